/* search_report.c - how a plan was found: the frontier of every product, the finalists with their
 * prices, and why the chosen one won.
 *
 * It is JSON from the start: it travels in the recipe's text (which a package keeps), so that
 * `explain` says the same of a model and of its package. What comes back may come from a file: the
 * printer takes nothing for granted. */
#include "compile/lowered.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- to JSON ---- */

static json_t *rounded(double cycles)
{
    return json_integer((json_int_t)llround(cycles));
}

/* "3 x 54 x 9", "swapped 23 x 4 x 16", "9 x 20 x 8 in 8 slices". */
static json_t *grid_text(const OpPlan *plan)
{
    Text text = {0};
    text_printf(&text, "%s%u x %u x %u", plan->swapped ? "swapped " : "", plan->rows, plan->columns,
                plan->inner);
    if (plan->slices > 1)
        text_printf(&text, " in %u slices", plan->slices);
    json_t *out = json_string(text_string(&text));
    text_free(&text);
    return out;
}

static void add_figures(json_t *out, const PlanFigures *figures)
{
    json_object_set_new(out, "standardBytes", json_integer((json_int_t)figures->standard));
    json_object_set_new(out, "interleavedBytes", json_integer((json_int_t)figures->interleaved));
    json_object_set_new(out, "largestBytes", json_integer((json_int_t)figures->largest));
    json_object_set_new(out, "rowBytes", json_integer((json_int_t)figures->row_bytes));
}

static bool same_way(const OpPlan *a, const OpPlan *b)
{
    return a->swapped == b->swapped && a->rows == b->rows && a->columns == b->columns &&
           a->inner == b->inner && a->slices == b->slices && a->scatter == b->scatter &&
           a->operand_count == b->operand_count && a->column_pairs == b->column_pairs &&
           a->gelu == b->gelu;
}

static json_t *point_json(const Compilation *c, const FrontierPoint *point)
{
    json_t *out = json_object();
    json_object_set_new(out, "boundary", json_string(point->boundary));
    json_object_set_new(out, "grid", grid_text(&point->plan));
    json_object_set_new(out, "cycles", rounded(point->figures.cycles));
    json_object_set_new(out, "exchangeCycles", rounded(point->figures.exchange_cycles));
    add_figures(out, &point->figures);
    json_object_set_new(out, "chosen",
                        json_boolean(same_way(&point->plan, &c->recipe->ops[point->op])));
    return out;
}

static json_t *product_json(const Compilation *c, const PlanReport *report, const FrontierOp *op)
{
    json_t *out = json_object(), *points = json_array();
    json_object_set_new(out, "operation", json_string(c->graph->operations.items[op->op].key));
    json_object_set_new(out, "grids", json_integer(op->grids));
    json_object_set_new(out, "priced", json_integer(op->priced));
    json_object_set_new(out, "candidates", json_integer(op->retained));
    json_object_set_new(out, "chosen", grid_text(&c->recipe->ops[op->op]));
    for (uint32_t i = 0; i < op->count; i++)
        json_array_append_new(points, point_json(c, &report->points[op->first + i]));
    json_object_set_new(out, "frontier", points);
    return out;
}

/* In which products a finalist differs from the chosen one, or the products of the chosen one. */
static json_t *ways_json(const Compilation *c, const Finalist *finalist, bool chosen)
{
    json_t *out = json_object();
    for (uint32_t op = 0; op < c->graph->operations.count; op++) {
        const OpPlan *plan = &finalist->recipe->ops[op];
        if (plan->algorithm == ALGORITHM_GEMM_GRID &&
            (chosen || !same_way(plan, &c->recipe->ops[op])))
            json_object_set_new(out, c->graph->operations.items[op].key, grid_text(plan));
    }
    return out;
}

static void set_price(json_t *out, const char *key, double cycles)
{
    json_object_set_new(out, key, cycles > 0 ? rounded(cycles) : json_null());
}

static json_t *finalist_json(const Compilation *c, const Finalist *finalist)
{
    json_t *out = json_object();
    bool chosen = finalist == &c->finalists[c->chosen];
    json_object_set_new(out, "rank", json_integer(finalist->rank));
    json_object_set_new(out, "chosen", json_boolean(chosen));
    set_price(out, "plannedCycles", finalist->planned);
    set_price(out, "expectedCycles", finalist->expected);
    set_price(out, "pricedCycles", finalist->priced);
    if (finalist->priced > 0) {
        set_price(out, "exchangeCycles", finalist->figures.exchange_cycles);
        add_figures(out, &finalist->figures);
    }
    if (finalist->failure)
        json_object_set_new(out, "failure", json_string(finalist->failure));
    json_object_set_new(out, "products", ways_json(c, finalist, chosen));
    return out;
}

static void say_price(const Compilation *c, Text *why)
{
    const Finalist *winner = &c->finalists[c->chosen], *second = NULL;
    uint32_t priced = 0, failed = 0;
    for (uint32_t i = 0; i < c->finalist_count; i++) {
        const Finalist *f = &c->finalists[i];
        failed += f->failure != NULL;
        if (f->priced <= 0 || f->failure)
            continue;
        priced++;
        if (f != winner && (!second || f->priced < second->priced))
            second = f;
    }
    text_printf(why, "%.0f cycles, ", winner->priced);
    if (second)
        text_printf(why, "the least of %u priced exactly: %.0f (%.2f %%) less than rank %u", priced,
                    second->priced - winner->priced,
                    100 * (second->priced - winner->priced) / winner->priced, second->rank);
    else
        text_append(why, "the only one priced exactly");
    uint32_t rest = c->finalist_count - priced - failed;
    if (rest)
        text_printf(why, "; of the other %u none was expected to need less", rest);
    if (failed)
        text_printf(why, "; %u could not be had", failed);
}

json_t *search_report_json(const Compilation *c)
{
    const PlanReport *report = &c->report;
    if (!c->finalist_count)
        return json_incref(c->search);
    json_t *out = json_object(), *products = json_array(), *finalists = json_array();
    for (uint32_t i = 0; i < report->op_count; i++)
        json_array_append_new(products, product_json(c, report, &report->ops[i]));
    for (uint32_t i = 0; i < c->finalist_count; i++)
        json_array_append_new(finalists, finalist_json(c, &c->finalists[i]));
    Text why = {0};
    say_price(c, &why);
    json_object_set_new(out, "products", products);
    json_object_set_new(out, "finalists", finalists);
    json_object_set_new(out, "why", json_string(text_string(&why)));
    text_free(&why);
    return out;
}

/* ---- from JSON to text ---- */

static const char *word(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "-";
}

static void number(Text *text, const json_t *object, const char *key, int width)
{
    const json_t *value = json_object_get(object, key);
    if (json_is_number(value))
        text_printf(text, " %*.0f", width, json_number_value(value));
    else
        text_printf(text, " %*s", width, "-");
}

enum { FEW = 5 }; /* points of a boundary, unless the operation was asked for */

/* What every plan costs beside its cycles. */
static void figures(Text *text, const json_t *plan)
{
    number(text, plan, "exchangeCycles", 9);
    number(text, plan, "standardBytes", 9);
    number(text, plan, "interleavedBytes", 11);
    number(text, plan, "largestBytes", 9);
    number(text, plan, "rowBytes", 7);
}

static void print_points(Text *text, const json_t *points, bool all)
{
    const char *boundary = "";
    uint32_t shown = 0, left_out = 0;
    size_t i;
    json_t *point;
    json_array_foreach(points, i, point)
    {
        if (strcmp(boundary, word(point, "boundary")) != 0) {
            boundary = word(point, "boundary");
            text_printf(text, "    %s\n", boundary);
            shown = 0;
        }
        bool chosen = json_is_true(json_object_get(point, "chosen"));
        if (!all && !chosen && shown >= FEW) {
            left_out++;
            continue;
        }
        shown++;
        text_printf(text, "    %c %-30s", chosen ? '*' : ' ', word(point, "grid"));
        number(text, point, "cycles", 9);
        figures(text, point);
        text_append(text, "\n");
    }
    if (left_out)
        text_printf(text, "    and %u more (--op shows all)\n", left_out);
}

static void print_frontier(Text *text, const json_t *products, const Map *only)
{
    size_t i;
    json_t *product;
    bool first = true;
    json_array_foreach(products, i, product)
    {
        if (only && !map_find_text(only, word(product, "operation")))
            continue;
        if (first)
            text_printf(text,
                        "\nfrontier of the products, operands still to be brought\n%-36s %9s "
                        "%9s %9s %11s %9s %7s\n",
                        "operation, boundary, grid", "cycles", "exchange", "standard",
                        "interleaved", "largest", "rows");
        first = false;
        text_printf(text, "  %s:", word(product, "operation"));
        number(text, product, "grids", 1);
        text_append(text, " grids,");
        number(text, product, "priced", 1);
        text_append(text, " candidates priced,");
        number(text, product, "candidates", 1);
        text_printf(text, " searched with; chosen %s\n", word(product, "chosen"));
        print_points(text, json_object_get(product, "frontier"), only != NULL);
    }
}

static void print_finalist(Text *text, const json_t *finalist)
{
    bool chosen = json_is_true(json_object_get(finalist, "chosen"));
    text_printf(text, "  %c", chosen ? '*' : ' ');
    number(text, finalist, "rank", 3);
    number(text, finalist, "plannedCycles", 9);
    number(text, finalist, "expectedCycles", 9);
    number(text, finalist, "pricedCycles", 9);
    figures(text, finalist);
    const char *key, *failure = json_string_value(json_object_get(finalist, "failure"));
    json_t *grid, *products = json_object_get(finalist, "products");
    uint32_t listed = 0, more = 0;
    if (failure)
        text_printf(text, "  %.60s%s", failure, strlen(failure) > 60 ? "..." : "");
    else if (chosen)
        text_append(text, "  chosen");
    else if (!json_object_size(products))
        text_append(text, "  the same grids, other formats");
    json_object_foreach(products, key, grid)
    {
        if (failure || chosen)
            break;
        if (listed == 3) {
            more++;
            continue;
        }
        text_printf(text, "%s %s %s", listed++ ? "," : " ", key,
                    json_is_string(grid) ? json_string_value(grid) : "-");
    }
    if (more)
        text_printf(text, " and %u more", more);
    text_append(text, "\n");
}

void search_report_print(Text *text, const json_t *search, const Map *only)
{
    if (!json_is_object(search))
        return;
    print_frontier(text, json_object_get(search, "products"), only);
    if (only)
        return;
    size_t i;
    json_t *finalist;
    text_printf(text,
                "\nfinalists: the search's sum, expected with its loads, exact price; memory of "
                "the fullest tile\n    %4s %9s %9s %9s %9s %9s %11s %9s %7s  differs in\n",
                "rank", "planned", "expected", "priced", "exchange", "standard", "interleaved",
                "largest", "rows");
    json_array_foreach(json_object_get(search, "finalists"), i, finalist)
        print_finalist(text, finalist);
    text_printf(text, "chosen: %s\n", word(search, "why"));
}
