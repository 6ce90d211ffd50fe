/* graph.h - what a model computes: a shaped SSA graph, no layouts.
 *
 * Values have shapes and are defined once: by an input, a parameter, an operation's result or a
 * repeat body's argument. Operations stand in order. A repeat runs a body region `count` times with
 * carried values and, per iteration, one member of each parameter sequence. Every operation has a
 * key, a stable path from the model's names ("encoder/layer[*]/mlp/up"). */
#ifndef IPU_GRAPH_GRAPH_H
#define IPU_GRAPH_GRAPH_H

#include "tensor/tensor.h"

typedef uint32_t ValueId;
enum { NO_VALUE = 0xffffffffu };

typedef enum ValueKind {
    VALUE_INPUT,     /* given by the host at every call */
    VALUE_PARAMETER, /* weights */
    VALUE_RESULT,
    VALUE_ARGUMENT /* of a repeat body */
} ValueKind;

typedef struct Value {
    uint8_t kind;
    const char *name; /* inputs, parameters, named outputs; else NULL */
    Shape shape;
    uint32_t operation; /* VALUE_RESULT: index of the defining operation; arguments: the repeat */
} Value;

typedef enum OpKind {
    OP_GEMM,       /* inputs: left [.., m, k], right [k, n] (or [n, k] transposed) */
    OP_ADD,        /* NumPy broadcasting */
    OP_LAYER_NORM, /* x, scale, bias; over the last axis; epsilon */
    OP_GELU,       /* tanh form */
    OP_SLICE,      /* axis, start, length */
    OP_VIEW,       /* axis-factor view, see mapping_view */
    OP_ATTENTION,  /* q [h, m, d], k [h, n, d], v [h, n, e] -> [h, m, e]; softmax(scale q k^T) v */
    OP_REPEAT
} OpKind;

typedef struct Operation {
    uint8_t kind;
    const char *key;
    ValueId *inputs, *results;
    uint32_t input_count, result_count;
    uint32_t region;                     /* the region it stands in; 0 is the top */
    bool transpose_right;                /* OP_GEMM */
    float epsilon;                       /* OP_LAYER_NORM */
    uint32_t axis, start, length;        /* OP_SLICE */
    uint32_t split, merge, factor;       /* OP_VIEW */
    bool reversed;                       /* OP_VIEW */
    float scale;                         /* OP_ATTENTION */
    uint32_t body, count, carried_count; /* OP_REPEAT: region; inputs = carried first values; */
    uint32_t *sequences, sequence_count; /*   sequences iterated; results = carried last values */
} Operation;

typedef struct GraphRegion { /* a list of operations; arguments = carried, then one per sequence */
    uint32_t *operations;
    uint32_t operation_count;
    ValueId *arguments, *yields;
    uint32_t argument_count, yield_count;
} GraphRegion;

typedef struct Sequence { /* parameters of equal shape, one per iteration */
    const char *name;     /* "vit.encoder.mlp.up.weight" */
    ValueId *members;
    uint32_t count;
} Sequence;

typedef struct GraphOutput {
    const char *name;
    ValueId value;
} GraphOutput;

typedef struct Graph { /* memory in the arena it was built with */
    Arena *arena;
    ARRAY(Value) values;
    ARRAY(Operation) operations;
    ARRAY(GraphRegion) regions; /* 0 is the top */
    ARRAY(Sequence) sequences;
    ARRAY(GraphOutput) outputs;
    uint32_t open_repeat; /* while building: index + 1 of the repeat that is not ended */
} Graph;

/* Building. Shapes are inferred and checked; errors name the operation's key. */
void graph_init(Graph *graph, Arena *arena);
ValueId graph_input(Graph *graph, const char *name, Shape shape);
ValueId graph_parameter(Graph *graph, const char *name, Shape shape);
Status graph_gemm(Graph *graph, const char *key, ValueId left, ValueId right, bool transpose_right,
                  ValueId *out);
Status graph_add(Graph *graph, const char *key, ValueId a, ValueId b, ValueId *out);
Status graph_layer_norm(Graph *graph, const char *key, ValueId x, ValueId scale, ValueId bias,
                        float epsilon, ValueId *out);
Status graph_gelu(Graph *graph, const char *key, ValueId x, ValueId *out);
Status graph_slice(Graph *graph, const char *key, ValueId x, uint32_t axis, uint32_t start,
                   uint32_t length, ValueId *out);
Status graph_view(Graph *graph, const char *key, ValueId x, uint32_t split, uint32_t merge,
                  uint32_t factor, bool reversed, ValueId *out);
Status graph_attention(Graph *graph, const char *key, ValueId q, ValueId k, ValueId v, float scale,
                       ValueId *out);
uint32_t graph_sequence(Graph *graph, const char *name, const ValueId *members, uint32_t count);
/* Opens a repeat; operations go into its body until graph_end_repeat. arguments: carried values
 * first, then one per sequence. Repeats do not nest, and a body uses nothing but its arguments and
 * what it computes. */
Status graph_begin_repeat(Graph *graph, const char *key, uint32_t count, const ValueId *carried,
                          uint32_t carried_count, const uint32_t *sequences,
                          uint32_t sequence_count, const ValueId **arguments);
Status graph_end_repeat(Graph *graph, const ValueId *yields, const ValueId **results);
Status graph_output(Graph *graph, const char *name, ValueId value);

Status graph_check(const Graph *graph); /* every rule above, on a finished graph */
/* only: keys of operations, NULL: all. In JSON a value's number is its "id". */
void graph_print(Text *text, const Graph *graph, const Map *only);
json_t *graph_to_json(const Graph *graph, const Map *only);
void graph_free(Graph *graph); /* the arrays; the arena stays its owner's */

/* Host evaluation in F64 with the names' tensors, row-major: the reference of tests and `bench`.
 * find returns the data of an input or parameter. outputs: one heap array per graph output, the
 * caller's to free; untouched when it fails. */
typedef const double *GraphTensor(void *context, const char *name);
Status graph_evaluate(const Graph *graph, GraphTensor *find, void *context, double **outputs);

#endif
