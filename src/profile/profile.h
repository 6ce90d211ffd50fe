/* profile.h - questions about a profile, and reports of it.
 *
 * A View is the samples of a profile on one clock, sorted by time. All numbers of queries and
 * reports come from it and are defined as memory-boot-package.md 5.3 says: work cycles are sums
 * over tiles, phase cycles the length of the union of a group's intervals over all tiles. */
#ifndef IPU_PROFILE_PROFILE_H
#define IPU_PROFILE_PROFILE_H

#include "device/device.h"

typedef struct ViewSample {
    uint32_t tile; /* index in the profile's tiles */
    uint32_t step, epoch;
    uint32_t offset, duration; /* cycles; offset 0: when the last tile entered (cropped) */
    bool cut;                  /* the crop took its beginning */
} ViewSample;

typedef struct View {
    const Profile *profile;
    ViewSample *samples; /* by offset, then tile */
    size_t count;
    uint32_t span;             /* end of the last sample */
    uint32_t cropped;          /* cycles left out at the beginning */
    double *useful, *physical; /* per step: cycles of useful and physical work, -1: no estimate */
    Arena arena;
} View;

/* shared_clock: keep everything, time 0 is the first entry. The profile must outlive the view. */
Status view_open(const Profile *profile, bool shared_clock, View *out);
void view_close(View *view);
/* Cycles of a sample in which its tile waited: at the boundary of an exchange, or all of a
 * synchronization. */
uint32_t view_wait(const View *view, const ViewSample *sample);

typedef enum GroupBy {
    GROUP_KIND,
    GROUP_KERNEL,
    GROUP_OPERATION,
    GROUP_PHASE,
    GROUP_TILE,
    GROUP_METADATA
} GroupBy;

typedef enum SortBy {
    SORT_PHASE_CYCLES,
    SORT_WORK_CYCLES,
    SORT_MAXIMUM_CYCLES,
    SORT_SAMPLES,
    SORT_NAME
} SortBy;

typedef struct Query {
    uint8_t group_by, sort_by;
    const char *metadata_key;    /* GROUP_METADATA */
    const char *kind, *kernel;   /* exact; NULL: any */
    const char *operation;       /* substring */
    const char *const *metadata; /* NAME or NAME=VALUE, all must hold */
    size_t metadata_count;
    int64_t tile, phase, at; /* physical tile, phase number, cycle; -1: any */
} Query;
#define QUERY_DEFAULT                                                                              \
    {                                                                                              \
        .group_by = GROUP_KERNEL, .sort_by = SORT_PHASE_CYCLES, .tile = -1, .phase = -1, .at = -1  \
    }

typedef struct Group {
    const char *name;
    uint64_t samples, work_cycles, wait_cycles;
    uint32_t tiles, phases; /* distinct */
    uint32_t phase_cycles;  /* union */
    uint32_t p50, p95, maximum;
    uint32_t first, last;    /* offset of the first beginning, of the last end */
    double useful, physical; /* cycles of work, over the samples that have an estimate */
    uint64_t measured;       /* cycles of those samples */
} Group;

typedef struct QueryResult { /* memory in its arena */
    Arena arena;
    Group *groups;
    size_t group_count;
    const ViewSample **matched; /* longest first */
    size_t matched_count;
} QueryResult;

/* An error when a kernel, operation, phase or cycle that is asked for is nowhere in the profile. */
Status query_check_names(const View *view, const Query *query);
Status query_run(const View *view, const Query *query, QueryResult *out);
void query_free(QueryResult *result);
/* group_limit 0: all groups; sample_limit 0: no samples. */
json_t *query_json(const View *view, const Query *query, const QueryResult *result,
                   size_t group_limit, size_t sample_limit);
void query_print(Text *text, const View *view, const QueryResult *result, size_t group_limit,
                 size_t sample_limit);

/* What happens in one exchange phase of one iteration, over the tiles that take part. */
typedef enum Role { ROLE_IDLE, ROLE_SEND, ROLE_RECEIVE, ROLE_BOTH, ROLE_PARTNER, ROLES } Role;
extern const char *const role_names[ROLES];

typedef struct ExchangeSummary {
    uint32_t phase, epoch, step;
    const char *operation;
    uint32_t tiles, first, last; /* first start, last end */
    uint32_t measured;           /* last end - first start */
    uint32_t arrival_wait;       /* last start - first start */
    uint32_t scheduled;          /* event cycles */
    uint32_t boundary;           /* measured - scheduled */
    uint32_t bound;
    uint64_t roles[ROLES]; /* cycles, over tiles */
} ExchangeSummary;

typedef struct ExchangeList {
    ExchangeSummary *items; /* in time */
    size_t count;
    Arena arena;
} ExchangeList;
void exchange_summaries(const View *view, ExchangeList *out);
void exchange_summaries_print(Text *text, const ExchangeList *list, size_t limit);
json_t *exchange_summaries_json(const ExchangeList *list);
/* Time in each role within [0, event cycles). */
void activity_roles(const ProfileActivity *activity, uint64_t roles[ROLES]);
/* What the tile does in each of `bins` equal stretches of its event cycles: the role that takes
 * most of it. */
void activity_bins(const ProfileActivity *activity, uint32_t event_cycles, uint8_t *bins,
                   uint32_t count);

/* What the plan expected of an operation and what it took. */
typedef struct OperationCost {
    const char *operation;
    double predicted, predicted_exchange; /* -1: not in the plan */
    uint32_t cycles;                      /* union of all its samples, waits included */
    uint32_t exchange_cycles;             /* union of its exchanges and synchronizations */
    uint64_t work_cycles;
} OperationCost;
Status operation_costs(const View *view, Arena *arena, OperationCost **out, size_t *count);

/* Before and after: groups of both by one key. */
typedef struct Difference {
    const char *name;
    const Group *before, *after; /* NULL: not there */
} Difference;
Status profile_difference(const QueryResult *before, const QueryResult *after, Arena *arena,
                          Difference **out, size_t *count); /* largest change first */
void difference_print(Text *text, const Difference *differences, size_t count, size_t limit);
json_t *difference_json(const Difference *differences, size_t count, size_t limit);

/* One self-contained HTML file. */
Status report_render(const View *view, const char *title, Text *out);

/* ---- compiled programs, at least to STAGE_MEMORY: nothing is measured here ----
 *
 * only: keys of operations, NULL: all; only_tile: logical, -1: all. */

typedef struct StepCost { /* of one execution of a step of the program */
    uint32_t step;
    uint8_t kind; /* StepKind */
    const char *operation, *kernel;
    uint32_t tiles, times;            /* that take part; executions, loops unrolled */
    uint32_t cycles, exchange_cycles; /* predicted, of the slowest tile */
    uint32_t standard, interleaved;   /* bytes of buffers alive, on the fullest tile */
    uint32_t row_bytes;               /* of the exchange, on the tile with most */
    uint32_t phase, bound;            /* NO_PHASE: no exchange */
    bool takes_part;                  /* the only_tile that was asked for */
} StepCost;
enum { NO_PHASE = 0xffffffffu };
StepCost *step_costs(const Compilation *compilation, Arena *arena, int32_t only_tile,
                     size_t *count);
void step_costs_print(Text *text, const Compilation *compilation, const StepCost *costs,
                      size_t count, const Map *only);
json_t *step_costs_json(const Compilation *compilation, const StepCost *costs, size_t count,
                        const Map *only);
/* Bytes of a buffer on a tile, all members; 0: not there, or in another buffer's memory. */
uint32_t compiled_buffer_bytes(const Compilation *compilation, uint32_t buffer, uint32_t tile);
/* Most bytes of buffers alive on a tile in any step; of one memory class or BufferRole, -1: any;
 * wanted: [buffer], NULL: all. */
uint32_t compiled_peak(const Compilation *compilation, uint32_t tile, int memory_class, int role,
                       const bool *wanted);

/* A program summed up, to be compared with another: rows of figures by name. */
enum { SUMMARY_OPERATIONS, SUMMARY_KERNELS, SUMMARY_MEMORY, SUMMARY_LISTS };
enum { SUMMARY_FIGURES = 4 };
typedef struct SummaryRow {
    const char *name;
    int64_t figure[SUMMARY_FIGURES]; /* operations: cycles and exchange cycles of all executions,
                                        bytes of rows, most bytes alive; kernels: cycles,
                                        executions; memory: bytes on the largest tile, on all */
} SummaryRow;
typedef ARRAY(SummaryRow) SummaryList;
typedef struct ProgramSummary {
    Arena arena;
    uint32_t tiles;
    int64_t cycles;                       /* predicted, of the whole run */
    int64_t step_cycles, exchange_cycles; /* sums over the wanted steps */
    SummaryList lists[SUMMARY_LISTS];
    Map variants; /* kernel specialisations */
} ProgramSummary;
void program_summary(const Compilation *compilation, const Map *only, int32_t only_tile,
                     ProgramSummary *out);
void program_summary_free(ProgramSummary *summary);
/* What became slower, faster, larger: the largest change first. */
void program_difference_print(Text *text, const ProgramSummary *before,
                              const ProgramSummary *after);
json_t *program_difference_json(const ProgramSummary *before, const ProgramSummary *after);

/* Memory of the tiles over the steps of a program. */
json_t *memory_report_json(const Compilation *compilation, const Map *only, int32_t only_tile);
void memory_report_render(const Compilation *compilation, const char *title, const Map *only,
                          int32_t only_tile, Text *out);

/* Pages: embedded sources, filled in. */
typedef enum PartKind { PART_RAW, PART_TEXT, PART_JSON } PartKind;
typedef struct ReportPart {
    const char *mark, *text; /* "@DATA@" and what stands there instead, wherever it stands */
    PartKind kind;
} ReportPart;
const char *report_source(const char *name); /* "" when unknown */
void report_fill(Text *out, const char *page, const ReportPart *parts, size_t count);

#endif
