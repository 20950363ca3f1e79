/* A driver library without a driver: what the real binding loads in tests instead of NVIDIA's.

   NVML_STUB_FAIL holds `function=code` or `function=code@N` (from its N-th call on), comma separated;
   a negative code is a signal that ends the process.
   NVML_STUB_GPUS, NVML_STUB_MIG and other NVML_STUB_<WORD> set what the functions below read by number().
   The layouts follow the binding's own structures; names and codes are NVIDIA's interface. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef unsigned int u32;
typedef unsigned long long u64;
enum { OK = 0, INVALID = 2, NOT_FOUND = 6, TOO_SMALL = 7, MAX_GPUS = 8, MAX_CALLS = 128 };

typedef struct { int index; } gpu_t;
static gpu_t gpus[MAX_GPUS];

static struct { char name[64]; u64 count; } calls[MAX_CALLS];

static u64 count_call(const char *name) {
    for (int i = 0; i < MAX_CALLS; i++) {
        if (!calls[i].name[0]) strncpy(calls[i].name, name, sizeof calls[i].name - 1);
        if (!strcmp(calls[i].name, name)) return ++calls[i].count;
    }
    return 0;
}

void stub_reset(void) { memset(calls, 0, sizeof calls); }

static int planted(const char *name) {
    u64 number = count_call(name);
    const char *plan = getenv("NVML_STUB_FAIL");
    size_t length = strlen(name);
    for (const char *at = plan; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, name, length) || at[length] != '=') continue;
        char *end;
        int code = (int)strtol(at + length + 1, &end, 10);
        u64 from = *end == '@' ? strtoull(end + 1, NULL, 10) : 1;
        if (number >= from && code < 0) raise(-code);
        return number >= from ? code : OK;
    }
    return OK;
}

static double number(const char *word, double usual) {
    char name[64];
    snprintf(name, sizeof name, "NVML_STUB_%s", word);
    const char *text = getenv(name);
    return text ? strtod(text, NULL) : usual;
}

static u64 now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (u64)now.tv_sec * 1000000u + (u64)now.tv_nsec / 1000u + (u64)number("CLOCK_SKEW_US", 0);
}

#define ANSWER() do { int code = planted(__func__); if (code) return code; } while (0)

int nvmlInitWithFlags(u32 flags) { (void)flags; ANSWER(); return OK; }
int nvmlShutdown(void) { ANSWER(); return OK; }
const char *nvmlErrorString(int code) { (void)code; return "an error of the stub"; }
int nvmlSystemGetDriverVersion(char *text, u32 size) { ANSWER(); snprintf(text, size, "580.00.stub"); return OK; }
int nvmlDeviceGetCount_v2(u32 *count) { ANSWER(); *count = (u32)number("GPUS", 1); return OK; }

int nvmlDeviceGetHandleByIndex_v2(u32 index, gpu_t **gpu) {
    ANSWER();
    if (index >= MAX_GPUS) return INVALID;
    gpus[index].index = (int)index;
    *gpu = &gpus[index];
    return OK;
}

int nvmlDeviceGetName(gpu_t *gpu, char *text, u32 size) { ANSWER(); snprintf(text, size, "Stub H%d", 200 + gpu->index); return OK; }

int nvmlDeviceGetUUID(gpu_t *gpu, char *text, u32 size) {
    ANSWER();
    snprintf(text, size, "GPU-00000000-0000-0000-0000-%012d", 7 - gpu->index);
    return OK;
}

int nvmlDeviceGetMigMode(gpu_t *gpu, u32 *now, u32 *next) { (void)gpu; ANSWER(); *now = *next = (u32)number("MIG", 0); return OK; }

typedef struct { u32 gpu, memory; } rates_t;
int nvmlDeviceGetUtilizationRates(gpu_t *gpu, rates_t *rates) {
    (void)gpu; ANSWER();
    rates->gpu = (u32)number("GPU_UTIL", 90);
    rates->memory = (u32)number("MEMORY_UTIL", 40);
    return OK;
}

typedef struct { u64 total, free, used; } memory_t;
int nvmlDeviceGetMemoryInfo(gpu_t *gpu, memory_t *memory) {
    (void)gpu; ANSWER();
    *memory = (memory_t){141u * (1ull << 30), 100u * (1ull << 30), 41u * (1ull << 30)};
    return OK;
}

typedef struct { u32 version; u64 total, reserved, free, used; } memory_v2_t;
int nvmlDeviceGetMemoryInfo_v2(gpu_t *gpu, memory_v2_t *memory) {
    (void)gpu; ANSWER();
    if (memory->version != 0x02000028) return 25;
    memory->total = (u64)number("MEMORY_TOTAL", 141.0 * (1ull << 30));
    memory->reserved = 1ull << 30;
    memory->used = 40ull << 30;
    memory->free = 100ull << 30;
    return OK;
}

int nvmlDeviceGetClockInfo(gpu_t *gpu, u32 kind, u32 *mhz) { (void)gpu; ANSWER(); *mhz = kind == 1 ? 1980 : 3201; return OK; }
int nvmlDeviceGetCurrentClocksEventReasons(gpu_t *gpu, u64 *mask) { (void)gpu; ANSWER(); *mask = (u64)number("THROTTLE", 0x4); return OK; }
int nvmlDeviceGetCurrentClocksThrottleReasons(gpu_t *gpu, u64 *mask) { (void)gpu; ANSWER(); *mask = 0x20; return OK; }
int nvmlDeviceGetPowerUsage(gpu_t *gpu, u32 *mw) { (void)gpu; ANSWER(); *mw = (u32)number("POWER_MW", 650000); return OK; }
int nvmlDeviceGetTemperature(gpu_t *gpu, u32 sensor, u32 *celsius) { (void)gpu; (void)sensor; ANSWER(); *celsius = 61; return OK; }

/* Grows by POWER_W joules a second of the monotonic clock, so that a run's difference is known. */
int nvmlDeviceGetTotalEnergyConsumption(gpu_t *gpu, u64 *mj) {
    (void)gpu; ANSWER();
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *mj = (u64)(((double)now.tv_sec + (double)now.tv_nsec / 1e9) * number("POWER_W", 650) * 1000);
    return OK;
}

typedef union { double d; u32 u; unsigned long ul; u64 ull; long long ll; int i; unsigned short us; } value_t;
typedef struct { u32 field, scope; long long stamp, latency; u32 type; int code; value_t value; } field_t;
int nvmlDeviceGetFieldValues(gpu_t *gpu, int count, field_t *fields) {
    (void)gpu; ANSWER();
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "field%u", fields[i].field);
        fields[i].code = planted(name);
        fields[i].type = (u32)number("FIELD_TYPE", 3);
        fields[i].value.ull = fields[i].field == 186 ? 700000 : 1000000ull * fields[i].field;
    }
    return OK;
}

int nvmlDeviceGetPcieThroughput(gpu_t *gpu, u32 kind, u32 *kb) { (void)gpu; ANSWER(); *kb = kind == 0 ? 1500 : 2500; return OK; }

typedef struct { u32 pid; u64 memory; u32 instance, compute; } process_t;
static int list_processes(u32 *count, process_t *found) {
    u32 there = (u32)number("PROCESSES", 2);
    if (there == 0) { *count = 0; return OK; }
    if (!found || *count < there) { *count = there; return TOO_SMALL; }
    for (u32 i = 0; i < there; i++) {
        memset(&found[i], 0, sizeof found[i]);
        found[i].pid = 4000 + i;
        found[i].memory = i == 1 ? ~0ull : 20ull << 30; /* the second one's is not told */
    }
    *count = there;
    return OK;
}
int nvmlDeviceGetComputeRunningProcesses_v3(gpu_t *gpu, u32 *count, process_t *found) { (void)gpu; ANSWER(); return list_processes(count, found); }
int nvmlDeviceGetComputeRunningProcesses_v2(gpu_t *gpu, u32 *count, process_t *found) { (void)gpu; ANSWER(); return list_processes(count, found); }

typedef struct { u64 stamp; value_t value; } sample_t;
int nvmlDeviceGetSamples(gpu_t *gpu, u32 kind, u64 last_us, u32 *type, u32 *count, sample_t *samples) {
    (void)gpu; ANSWER();
    u64 now = now_us();
    u32 fresh = now > last_us ? (u32)number("SAMPLES", 2) : 0;
    if (!fresh) return NOT_FOUND;
    *type = 1;
    for (u32 i = 0; samples && i < fresh && i < *count; i++) {
        samples[i].stamp = now - 1000u * (fresh - 1 - i);
        samples[i].value.ull = 0;
        samples[i].value.u = kind == 1 ? 80 + i : 30 + i;
    }
    *count = fresh;
    return OK;
}

typedef struct { u32 pid; u64 stamp; u32 sm, memory, encoder, decoder; } busy_t;
int nvmlDeviceGetProcessUtilization(gpu_t *gpu, busy_t *found, u32 *count, u64 last_us) {
    (void)gpu; (void)last_us; ANSWER();
    if (!found) { *count = 2; return TOO_SMALL; } /* room for two, one is written: the other stays empty */
    memset(found, 0, *count * sizeof *found);
    found[0] = (busy_t){.pid = 4000, .stamp = now_us(), .sm = 70, .memory = 20};
    return OK;
}

typedef struct { u32 version, is_supported; } support_t;
int nvmlGpmQueryDeviceSupport(gpu_t *gpu, support_t *support) { (void)gpu; ANSWER(); support->is_supported = 1; return OK; }
int nvmlGpmSampleAlloc(u64 **sample) { ANSWER(); *sample = calloc(1, sizeof **sample); return OK; }
int nvmlGpmSampleFree(u64 *sample) { ANSWER(); free(sample); return OK; }
int nvmlGpmSampleGet(gpu_t *gpu, u64 *sample) {
    (void)gpu; ANSWER();
    static u64 taken;
    *sample = ++taken;
    return OK;
}

typedef struct { u32 id; int code; double value; const char *names[3]; } metric_t;
typedef struct { u32 version, count; u64 *older, *newer; metric_t metrics[]; } metrics_t;
int nvmlGpmMetricsGet(metrics_t *wanted) {
    ANSWER();
    if (wanted->version != 1 || *wanted->newer <= *wanted->older) return INVALID; /* swapped, or one sample twice */
    for (u32 i = 0; i < wanted->count; i++) {
        char name[32];
        snprintf(name, sizeof name, "metric%u", wanted->metrics[i].id);
        wanted->metrics[i].code = planted(name);
        wanted->metrics[i].value = number("GPM", wanted->metrics[i].id);
    }
    return OK;
}
