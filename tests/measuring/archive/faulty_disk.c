/* What if the disk refuses at the n-th call? Preloaded before libc; counts calls that change what lies below a
   folder, and lets the n-th one (and, when it is to last, all after it) fail. Used by one thread. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[PATH_MAX];
static long calls, fail_at;
static int fail_with, is_lasting;

void fault_arm(const char *below, long at, int with, int lasting) {
    snprintf(folder, sizeof folder, "%s", below);
    calls = 0;
    fail_at = at;
    fail_with = with;
    is_lasting = lasting;
}

long fault_disarm(void) {
    folder[0] = 0;
    return calls;
}

static int refuses(const char *path) {
    if (!folder[0] || strncmp(path, folder, strlen(folder)) != 0) return 0;
    calls++;
    if (calls != fail_at && !(is_lasting && calls > fail_at)) return 0;
    errno = fail_with;
    return 1;
}

static int refuses_file(int descriptor) {
    char link[64], path[PATH_MAX];
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return refuses(path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int descriptor, const void *data, size_t size) {
    return refuses_file(descriptor) ? -1 : REAL(write)(descriptor, data, size);
}

int fsync(int descriptor) { return refuses_file(descriptor) ? -1 : REAL(fsync)(descriptor); }

int mkdir(const char *path, mode_t mode) { return refuses(path) ? -1 : REAL(mkdir)(path, mode); }

int rename(const char *from, const char *to) { return refuses(from) ? -1 : REAL(rename)(from, to); }

int unlink(const char *path) { return refuses(path) ? -1 : REAL(unlink)(path); }

int rmdir(const char *path) { return refuses(path) ? -1 : REAL(rmdir)(path); }

static int opened(const char *name, const char *path, int flags, mode_t mode) {
    if ((flags & O_CREAT) && refuses(path)) return -1;
    return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, name))(path, flags, mode);
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return opened("open", path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return opened("open64", path, flags, mode);
}
