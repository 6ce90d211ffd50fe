/* walk.h - the search's states and steps: shared by steps.c, repeat.c and search.c. */
#ifndef IPU_PLAN_WALK_H
#define IPU_PLAN_WALK_H

#include "plan/internal.h"

enum {
    UNSET = 0xffffffffu,    /* not computed yet */
    FREE = 0xfffffffeu,     /* a parameter or input that nobody has placed */
    DEFERRED = 0xfffffffdu, /* a bias add that the GELU behind it carries out */
    DEFAULT_BEAM = 24,
    MOST_BEAM = 512,
    STEP_CLASSES = 128,
    PER_CLASS = 2,    /* steps of each class that are kept though they are not among the best: what
                         follows may not be able to read those */
    LAST_BEAM = 8,    /* behind the last operation nothing depends on what is second best */
    FUSED_ADD = 600,  /* about what an add of its own costs */
    BODY_ENDINGS = 3, /* finished bodies kept per entry format */
    MAX_UPDATES = 6
};

typedef struct Choice { /* the decisions of a state, last first */
    uint32_t op;
    OpPlan plan;
    const struct Choice *before;
    const struct Choice *body; /* repeats: the body's decisions */
} Choice;

typedef struct State {
    double cost;
    uint64_t resident; /* bytes that stay on a tile for good, as if on the same one */
    uint32_t *storage; /* per graph value */
    const Choice *choices;
} State;
typedef ARRAY(State) StateArray;

typedef struct Update {
    ValueId value;
    uint32_t storage;
} Update;

typedef ARRAY(const Candidate *) CandidateRefs;

typedef struct Best {
    double rank;
    uint64_t target;
} Best;

typedef struct Target { /* the best step to a set of live values */
    double rank;
    uint64_t resident;
} Target;

typedef struct Next { /* a step from a state, before anything is copied */
    double cost;
    double rank; /* cost, less what operations already carried out would have cost */
    uint64_t resident;
    uint32_t state, order;
    const OpPlan *plan;
    double cycles, exchange;
    bool in_place;
    uint8_t spread, own;
    uint8_t fused;
    uint64_t target; /* hash of what lives on and where, 0: not known */
    double ahead;    /* what operations behind this one would cost that it carries out */
    uint32_t update_count;
    Update updates[MAX_UPDATES];
} Next;
typedef ARRAY(Next) NextArray;

typedef struct Walk {
    Planner *p;
    uint32_t iterations; /* members of a parameter argument */
    uint32_t op;         /* being expanded */
    uint32_t beam;       /* states to keep after it */
    bool last;           /* nothing comes after it that could ask for memory */
    uint32_t slices;     /* of K, in which the operand at hand comes; else 0 or 1 */
    NextArray nexts;
    uint32_t of_class[STEP_CLASSES]; /* steps so far */
    Best *best;                      /* of the steps so far, ascending: a beam of them */
    Map target_ids;
    ARRAY(Target) targets;
    uint32_t ranked;
    uint64_t lightest; /* the least that a step so far keeps resident */
} Walk;

typedef enum Own {
    OWN_NO,
    OWN_COPIED,  /* in shares on the tiles that want it; each copies its own to the operand */
    OWN_IN_PLACE /* the shares lie in the operand's buffer */
} Own;

typedef struct Bill { /* what the operands of one step cost */
    uint32_t words, sources;
    double before; /* cost of phases that bring operands to where they are spread */
    bool may_spread;
    bool spread;     /* the last operand goes that way */
    uint8_t may_own; /* Own: how the next operand may be stored where it is wanted */
    bool own;        /* the last operand lies in shares of its own buffer */
    double local;
    uint64_t bytes;    /* of copies */
    uint64_t resident; /* of parameters placed and padded copies */
    uint32_t busy_end; /* tiles that take part in the operation end here, when known */
} Bill;

/* steps.c: the ways on from a state by the operation w->op that need a bill go to `out`; those that
 * cost nothing go to w->nexts at once. */
Status list_steps(Walk *w, const State *state, Next next, CandidateRefs *out);
/* One of them, with all that it costs, to w->nexts. */
Status step_candidate(Walk *w, const State *state, const Candidate *c, Next next);
/* One operand: finds or places its storage and adds the conversion to the bill. */
Status bill_operand(Walk *w, const State *state, Next *next, ValueId value, const TensorType *type,
                    const OperandPlan *operand, const Mapping *extra, bool in_place, Bill *bill);

/* No conversion can make a step of this rank one of those that are kept: a beam of better ones is
 * there, and it does not leave more memory than they. */
bool walk_hopeless(const Walk *w, const OpPlan *plan, double rank, uint64_t resident);
/* Steps that leave their results in the same kind of format. */
uint32_t step_class(const OpPlan *plan);
/* A better step ends in the same live values. */
bool walk_dominated(const Walk *w, uint64_t target, double rank, uint64_t resident);
/* What the operations would cost that a product carries out: ranks states that are ahead. */
static inline double ahead_of(const Candidate *c)
{
    bool product = c->plan.algorithm == ALGORITHM_GEMM_GRID;
    return product ? FUSED_ADD * (c->plan.operand_count - 2.0) + c->gelu : 0;
}

/* bounds.c: all steps by the operation w->op from all states that may be among the best. */
Status walk_operation(Walk *w, const StateArray *states);

/* search.c */
Status walk_region(Planner *p, uint32_t region, uint32_t iterations, const State *start,
                   StateArray *out);
uint64_t live_hash(const Planner *p, const State *state, uint32_t op);

/* repeat.c: the operation w->op, a repeat, from all states at once. */
Status walk_repeat(Walk *w, const StateArray *states, StateArray *out);

#endif
