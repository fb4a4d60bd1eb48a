/* A stand-in for libnvidia-ml.so.1, for tests of the probe. What it pretends is chosen when it is compiled. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef int ret;
typedef struct { int index; } device;
typedef struct { unsigned long long total, free, used; } memory_v1;
typedef struct { unsigned int version; unsigned long long total, reserved, free, used; } memory_v2;
typedef struct { unsigned int pid; unsigned long long used; unsigned int gi, ci; } holder;

enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT = 7, NOT_LOADED = 9, UNKNOWN = 999 };

#define GIB (1024ULL * 1024 * 1024)
#define MIB (1024ULL * 1024)

#ifndef COUNT
#define COUNT 1
#endif
#ifndef TOTAL
#define TOTAL(i) (24564 * MIB)
#endif
#ifndef FREE
#define FREE(i) (22 * GIB)
#endif
#ifndef SLICES
#define SLICES 0
#endif

static device cards[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
static device slices[8] = {{100}, {101}, {102}, {103}, {104}, {105}, {106}, {107}};

static ret start(void) {
#ifdef HANG
    for (;;) pause();
#endif
#ifdef FAIL
    return NOT_LOADED;
#endif
    return OK;
}

ret nvmlInit(void) { return start(); }
ret nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(ret r) {
    switch (r) {
    case OK: return "Success";
    case NOT_SUPPORTED: return "Not Supported";
    case NOT_LOADED: return "Driver Not Loaded";
    default: return "Unknown Error";
    }
}
ret nvmlDeviceGetCount(unsigned int *n) { *n = COUNT; return OK; }
ret nvmlDeviceGetHandleByIndex(unsigned int i, device **d) {
    if (i >= COUNT) return NOT_FOUND;
    *d = &cards[i];
    return OK;
}
ret nvmlDeviceGetName(device *d, char *s, unsigned int n) {
    if (d->index >= 100) snprintf(s, n, "Stub A100 MIG 3g.20gb");
    else snprintf(s, n, "Stub %d", d->index);
    return OK;
}
ret nvmlDeviceGetUUID(device *d, char *s, unsigned int n) {
    snprintf(s, n, d->index >= 100 ? "MIG-%08d" : "GPU-%08d", d->index);
    return OK;
}
ret nvmlDeviceGetMemoryInfo(device *d, memory_v1 *m) {
#ifdef UNIFIED
    return NOT_SUPPORTED;
#endif
    if (d->index >= 100) { m->total = 20 * GIB; m->free = 19 * GIB; }
    else { m->total = TOTAL(d->index); m->free = FREE(d->index); }
    m->used = m->total - m->free;
    return OK;
}

#ifndef OLD
ret nvmlInit_v2(void) { return start(); }
ret nvmlDeviceGetCount_v2(unsigned int *n) { return nvmlDeviceGetCount(n); }
ret nvmlDeviceGetHandleByIndex_v2(unsigned int i, device **d) { return nvmlDeviceGetHandleByIndex(i, d); }
ret nvmlSystemGetDriverVersion(char *s, unsigned int n) { snprintf(s, n, "570.00"); return OK; }
ret nvmlDeviceGetCudaComputeCapability(device *d, int *major, int *minor) { *major = 8; *minor = 9; return OK; }
ret nvmlDeviceGetDisplayActive(device *d, unsigned int *on) {
    *on = d->index == 1;
    return OK;
}
ret nvmlDeviceGetMemoryInfo_v2(device *d, memory_v2 *m) {
    memory_v1 old;
    ret r = nvmlDeviceGetMemoryInfo(d, &old);
    if (r != OK) return r;
    m->total = old.total; m->free = old.free; m->reserved = 512 * MIB; m->used = old.total - old.free - m->reserved;
    return OK;
}
ret nvmlDeviceGetMigMode(device *d, unsigned int *now, unsigned int *next) {
#ifdef MIG
    *now = *next = 1;
    return OK;
#else
    return NOT_SUPPORTED;
#endif
}
ret nvmlDeviceGetMaxMigDeviceCount(device *d, unsigned int *n) { *n = 7; return OK; }
ret nvmlDeviceGetMigDeviceHandleByIndex(device *d, unsigned int i, device **slice) {
    /* The numbers have gaps: only every second one is there. */
    if (i % 2 || i / 2 >= SLICES) return NOT_FOUND;
    *slice = &slices[i / 2];
    return OK;
}
ret nvmlDeviceGetComputeRunningProcesses_v3(device *d, unsigned int *n, holder *list) {
    if (*n < 2) { *n = 2; return INSUFFICIENT; }
    list[0].pid = 4000000; list[0].used = 1536 * MIB;
    list[1].pid = 1; list[1].used = ~0ULL;
    *n = 2;
    return OK;
}
ret nvmlDeviceGetGraphicsRunningProcesses_v3(device *d, unsigned int *n, holder *list) {
    if (*n < 1) { *n = 1; return INSUFFICIENT; }
    list[0].pid = 4000000; list[0].used = 1536 * MIB;
    *n = 1;
    return OK;
}
#endif
