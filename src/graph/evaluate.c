/* evaluate.c - what a graph computes, on the host in F64: the reference of every numerical check.
 *
 * Written for being right: the plain definitions, values kept until the end. Only the products use
 * a library (OpenBLAS), because they are all of the time. */
#include "graph/internal.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

typedef struct Evaluation {
    const Graph *graph;
    const double **data; /* per value */
    double **own;        /* what evaluation allocated, per value */
} Evaluation;

static const Shape *shape_of(const Evaluation *e, ValueId value)
{
    return &e->graph->values.items[value].shape;
}

/* Fresh memory for a result; a repeat's body writes the same values again. */
static double *result(Evaluation *e, ValueId value)
{
    if (!e->own[value])
        e->own[value] = xmalloc(array_bytes(shape_elements(shape_of(e, value)), sizeof(double)));
    e->data[value] = e->own[value];
    return e->own[value];
}

static void gemm(Evaluation *e, const Operation *op)
{
    const Shape *left = shape_of(e, op->inputs[0]), *right = shape_of(e, op->inputs[1]);
    int k = (int)left->extent[left->rank - 1];
    int m = (int)(shape_elements(left) / (uint32_t)k);
    int n = (int)right->extent[op->transpose_right ? 0 : 1];
    cblas_dgemm(CblasRowMajor, CblasNoTrans, op->transpose_right ? CblasTrans : CblasNoTrans, m, n,
                k, 1, e->data[op->inputs[0]], k, e->data[op->inputs[1]],
                op->transpose_right ? k : n, 0, result(e, op->results[0]), n);
}

/* Copies through a mapping's definition; slices, views and broadcasts share it. */
static void map_elements(const Mapping *mapping, const Shape *source, const Shape *destination,
                         const double *from, double *to)
{
    uint32_t index[MAX_RANK] = {0};
    uint64_t elements = shape_elements(destination);
    for (uint64_t i = 0; i < elements; i++) {
        uint32_t atoms[MAX_ATOMS] = {0};
        for (uint32_t a = 0; a < destination->rank; a++) {
            uint32_t rest = index[a] - mapping->destination[a].offset;
            for (uint32_t k = mapping->destination[a].count; k-- > 0;) {
                uint32_t atom = mapping->destination[a].atoms[k];
                atoms[atom] = rest % mapping->extent[atom];
                rest /= mapping->extent[atom];
            }
        }
        uint64_t flat = 0;
        for (uint32_t a = 0; a < source->rank; a++) {
            uint64_t at = 0;
            for (uint32_t k = 0; k < mapping->source[a].count; k++)
                at = at * mapping->extent[mapping->source[a].atoms[k]] +
                     atoms[mapping->source[a].atoms[k]];
            flat = flat * source->extent[a] + at + mapping->source[a].offset;
        }
        to[i] = from[flat];
        for (uint32_t a = destination->rank; a-- > 0 && ++index[a] == destination->extent[a];)
            index[a] = 0;
    }
}

static Status add(Evaluation *e, const Operation *op)
{
    const Shape *shape = shape_of(e, op->results[0]);
    uint64_t elements = shape_elements(shape);
    double *out = result(e, op->results[0]);
    double *other = xmalloc(array_bytes(elements, sizeof *other));
    Mapping mapping;
    Status status = STATUS_OK;
    for (uint32_t i = 0; i < 2 && status_ok(status); i++) {
        const Shape *source = shape_of(e, op->inputs[i]);
        status = mapping_broadcast(source, shape, &mapping);
        if (status_ok(status))
            map_elements(&mapping, source, shape, e->data[op->inputs[i]], i ? other : out);
    }
    for (uint64_t i = 0; i < elements && status_ok(status); i++)
        out[i] += other[i];
    free(other);
    return status;
}

static void layer_norm(Evaluation *e, const Operation *op)
{
    const Shape *shape = shape_of(e, op->inputs[0]);
    uint32_t columns = shape->extent[shape->rank - 1];
    uint64_t rows = shape_elements(shape) / columns;
    const double *x = e->data[op->inputs[0]], *scale = e->data[op->inputs[1]];
    const double *bias = e->data[op->inputs[2]];
    double *out = result(e, op->results[0]);
    for (uint64_t r = 0; r < rows; r++, x += columns, out += columns) {
        double mean = 0, variance = 0;
        for (uint32_t c = 0; c < columns; c++)
            mean += x[c];
        mean /= columns;
        for (uint32_t c = 0; c < columns; c++)
            variance += (x[c] - mean) * (x[c] - mean);
        variance /= columns;
        double factor = 1 / sqrt(variance + (double)op->epsilon);
        for (uint32_t c = 0; c < columns; c++)
            out[c] = (x[c] - mean) * factor * scale[c] + bias[c];
    }
}

static void gelu(Evaluation *e, const Operation *op)
{
    const double *x = e->data[op->inputs[0]];
    double *out = result(e, op->results[0]);
    uint64_t elements = shape_elements(shape_of(e, op->inputs[0]));
    for (uint64_t i = 0; i < elements; i++)
        out[i] = 0.5 * x[i] * (1 + tanh(sqrt(2 / M_PI) * (x[i] + 0.044715 * x[i] * x[i] * x[i])));
}

static void softmax_row(double *row, uint32_t keys, double scale)
{
    double maximum = -INFINITY, sum = 0;
    for (uint32_t i = 0; i < keys; i++)
        maximum = fmax(maximum, row[i] * scale);
    for (uint32_t i = 0; i < keys; i++)
        sum += row[i] = exp(row[i] * scale - maximum);
    for (uint32_t i = 0; i < keys; i++)
        row[i] /= sum;
}

static void attention(Evaluation *e, const Operation *op)
{
    const Shape *q = shape_of(e, op->inputs[0]), *v = shape_of(e, op->inputs[2]);
    uint32_t heads = q->extent[0], m = q->extent[1], d = q->extent[2];
    uint32_t n = v->extent[1], width = v->extent[2];
    double *out = result(e, op->results[0]);
    double *scores = xmalloc(array_bytes((size_t)m * n, sizeof *scores));
    for (uint32_t h = 0; h < heads; h++) {
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)m, (int)n, (int)d, 1,
                    e->data[op->inputs[0]] + (size_t)h * m * d, (int)d,
                    e->data[op->inputs[1]] + (size_t)h * n * d, (int)d, 0, scores, (int)n);
        for (uint32_t i = 0; i < m; i++)
            softmax_row(scores + (size_t)i * n, n, (double)op->scale);
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)width, (int)n, 1,
                    scores, (int)n, e->data[op->inputs[2]] + (size_t)h * n * width, (int)width, 0,
                    out + (size_t)h * m * width, (int)width);
    }
    free(scores);
}

static Status view_or_slice(Evaluation *e, const Operation *op)
{
    const Shape *source = shape_of(e, op->inputs[0]);
    Shape shape = *shape_of(e, op->results[0]);
    Mapping mapping;
    if (op->kind == OP_SLICE)
        mapping = mapping_slice(source, op->axis, op->start, op->length);
    else
        TRY(mapping_view(source, op->split, op->merge, op->factor, op->reversed, &shape, &mapping));
    map_elements(&mapping, source, &shape, e->data[op->inputs[0]], result(e, op->results[0]));
    return STATUS_OK;
}

static Status evaluate_region(Evaluation *e, uint32_t region);

static void copy_value(Evaluation *e, ValueId from, ValueId to)
{
    size_t bytes = shape_elements(shape_of(e, from)) * sizeof(double);
    const double *data = e->data[from];
    memcpy(result(e, to), data, bytes);
}

/* Yields are read after the whole body, so carried arguments are copies; results likewise. */
static Status repeat(Evaluation *e, const Operation *op)
{
    const GraphRegion *body = &e->graph->regions.items[op->body];
    for (uint32_t i = 0; i < op->carried_count; i++)
        copy_value(e, op->inputs[i], op->results[i]);
    for (uint32_t iteration = 0; iteration < op->count; iteration++) {
        for (uint32_t i = 0; i < op->carried_count; i++)
            copy_value(e, op->results[i], body->arguments[i]);
        for (uint32_t i = 0; i < op->sequence_count; i++)
            e->data[body->arguments[op->carried_count + i]] =
                e->data[e->graph->sequences.items[op->sequences[i]].members[iteration]];
        TRY(evaluate_region(e, op->body));
        for (uint32_t i = 0; i < op->carried_count; i++)
            copy_value(e, body->yields[i], op->results[i]);
    }
    return STATUS_OK;
}

static Status evaluate_operation(Evaluation *e, const Operation *op)
{
    switch (op->kind) {
    case OP_GEMM:
        gemm(e, op);
        return STATUS_OK;
    case OP_ADD:
        return add(e, op);
    case OP_LAYER_NORM:
        layer_norm(e, op);
        return STATUS_OK;
    case OP_GELU:
        gelu(e, op);
        return STATUS_OK;
    case OP_ATTENTION:
        attention(e, op);
        return STATUS_OK;
    case OP_REPEAT:
        return repeat(e, op);
    default:
        return view_or_slice(e, op);
    }
}

static Status evaluate_region(Evaluation *e, uint32_t region)
{
    const GraphRegion *r = &e->graph->regions.items[region];
    for (uint32_t i = 0; i < r->operation_count; i++) {
        const Operation *op = &e->graph->operations.items[r->operations[i]];
        TRY(status_context(evaluate_operation(e, op), "%s", op->key));
    }
    return STATUS_OK;
}

static Status evaluate(Evaluation *e, GraphTensor *find, void *context, double **outputs)
{
    const Graph *graph = e->graph;
    for (uint32_t i = 0; i < graph->values.count; i++) {
        const Value *value = &graph->values.items[i];
        if (value->kind > VALUE_PARAMETER)
            continue;
        e->data[i] = find(context, value->name);
        if (!e->data[i])
            return status_error("%s: no data", value->name);
    }
    TRY(evaluate_region(e, 0));
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        ValueId value = graph->outputs.items[i].value;
        size_t bytes = array_bytes(shape_elements(shape_of(e, value)), sizeof(double));
        outputs[i] = xmalloc(bytes);
        memcpy(outputs[i], e->data[value], bytes);
    }
    return STATUS_OK;
}

Status graph_evaluate(const Graph *graph, GraphTensor *find, void *context, double **outputs)
{
    TRY(graph_check(graph));
    Evaluation e = {.graph = graph,
                    .data = xcalloc(graph->values.count, sizeof *e.data),
                    .own = xcalloc(graph->values.count, sizeof *e.own)};
    Status status = evaluate(&e, find, context, outputs);
    for (uint32_t i = 0; i < graph->values.count; i++)
        free(e.own[i]);
    free(e.own);
    free(e.data);
    return status;
}
