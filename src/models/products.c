/* products.c - graphs of plain products: the workloads of the benches. */
#include "models/internal.h"

static Status gemm_graph(const Model *model, Graph *graph)
{
    Shape x = {3, {model->batch, model->rows, model->inner}},
          w = {2, {model->inner, model->columns}};
    ValueId left = graph_input(graph, "left", x), y;
    TRY(graph_gemm(graph, "gemm", left, graph_parameter(graph, "right", w), false, &y));
    return graph_output(graph, "output", y);
}

static Status mlp_graph(const Model *model, Graph *graph)
{
    Shape x = {3, {model->batch, model->rows, model->inner}};
    Shape up = {2, {model->inner, model->hidden}}, down = {2, {model->hidden, model->inner}};
    ValueId y = graph_input(graph, "input", x);
    for (uint32_t b = 0; b < model->blocks; b++) {
        const char *first = arena_printf(graph->arena, "block%u.up", b);
        const char *second = arena_printf(graph->arena, "block%u.down", b);
        ValueId left = graph_parameter(graph, first, up);
        ValueId right = graph_parameter(graph, second, down);
        TRY(graph_gemm(graph, arena_printf(graph->arena, "block%u/up", b), y, left, false, &y));
        TRY(graph_gelu(graph, arena_printf(graph->arena, "block%u/gelu", b), y, &y));
        TRY(graph_gemm(graph, arena_printf(graph->arena, "block%u/down", b), y, right, false, &y));
    }
    return graph_output(graph, "output", y);
}

Status products_graph(const Model *model, Graph *out)
{
    TRY(model->kind == MODEL_GEMM ? gemm_graph(model, out) : mlp_graph(model, out));
    return graph_check(out);
}
