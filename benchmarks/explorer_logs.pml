/* Scope `logs-three` of the explorer, profile kip-236-amended, for SPIN: the same states and steps.
 *
 * One process takes one action at a time, each a single step. Brokers are 0 to 2. A log is a length
 * and two leader epochs, unused places zero; `rq` is 0 without a request, 1 on its way, 2 served.
 * `shown` is 3 while consumers are shown nothing.
 */
#define N 3
#define RECORDS 2
#define ELECTIONS 1

byte leader = 0, epoch = 0, endel = 0, shown = 0, clen = 0, lags = 3, removals = 3;
bit stale = 0;
bit isr[N], tisr[N], pseudo[N];
byte crec[RECORDS], off[N], size[N], rec[6], mark[N], ep[N], rq[N], rqe[N], rqo[N];
hidden byte m, i;

#define SHOW \
  if \
  :: mark[leader] < endel -> shown = 3 \
  :: else -> shown = mark[leader]; \
     if \
     :: mark[leader] > clen -> \
        clen = mark[leader]; crec[0] = 0; crec[1] = 0; \
        if :: clen > 0 -> crec[0] = rec[leader*2] :: else fi; \
        if :: clen > 1 -> crec[1] = rec[leader*2+1] :: else fi \
     :: else \
     fi \
  fi

#define NEAREST(b) \
  if \
  :: (pseudo[b] || tisr[b]) -> \
     if \
     :: b == leader -> if :: size[b] < m -> m = size[b] :: else fi \
     :: b != leader -> if :: off[b] < m -> m = off[b] :: else fi \
     fi \
  :: else \
  fi

#define ACTIONS(b) \
  :: d_step { leader == b && size[b] < RECORDS -> rec[b*2+size[b]] = epoch; size[b]++ } \
  :: d_step { leader == b -> m = RECORDS; NEAREST(0); NEAREST(1); NEAREST(2); \
       if :: m > mark[b] -> mark[b] = m :: else fi; SHOW } \
  :: d_step { leader == b && stale -> \
       tisr[0] = isr[0]; tisr[1] = isr[1]; tisr[2] = isr[2]; stale = 0 } \
  :: d_step { epoch < ELECTIONS && isr[b] -> epoch++; leader = b; ep[b] = epoch; \
       rq[b] = 0; rqe[b] = 0; rqo[b] = 0; endel = size[b]; stale = 0; \
       tisr[0] = isr[0]; tisr[1] = isr[1]; tisr[2] = isr[2]; \
       pseudo[0] = isr[0]; pseudo[1] = isr[1]; pseudo[2] = isr[2]; \
       off[0] = 0; off[1] = 0; off[2] = 0; SHOW } \
  :: d_step { leader != b && rq[b] == 1 && rqe[b] == epoch -> off[b] = rqo[b]; rq[b] = 2 } \
  :: d_step { leader != b && rq[b] == 2 && ep[b] == epoch -> \
       if :: size[b] < 1 && size[leader] > 0 -> rec[b*2] = rec[leader*2] :: else fi; \
       if :: size[b] < 2 && size[leader] > 1 -> rec[b*2+1] = rec[leader*2+1] :: else fi; \
       if :: size[leader] > size[b] -> size[b] = size[leader] :: else fi; \
       m = (mark[leader] < size[b] -> mark[leader] : size[b]); \
       if :: m > mark[b] -> mark[b] = m :: else fi; \
       rq[b] = 1; rqe[b] = epoch; rqo[b] = size[b] } \
  :: d_step { leader != b && pseudo[b] && lags > 0 -> pseudo[b] = 0; lags-- } \
  :: d_step { leader != b && !pseudo[b] && ep[b] == epoch -> pseudo[b] = 1 } \
  :: d_step { leader != b && pseudo[b] && !tisr[b] && !stale && off[b] >= mark[leader] && \
       off[b] >= endel -> \
       tisr[b] = 1; isr[0] = tisr[0]; isr[1] = tisr[1]; isr[2] = tisr[2] } \
  :: d_step { leader != b && !pseudo[b] && tisr[b] && !stale -> \
       tisr[b] = 0; isr[0] = tisr[0]; isr[1] = tisr[1]; isr[2] = tisr[2] } \
  :: d_step { leader != b && isr[b] && removals > 0 -> isr[b] = 0; stale = 1; removals-- } \
  :: d_step { leader != b && ep[b] != epoch -> m = 0; \
       if \
       :: size[b] > 0 && size[leader] > 0 && rec[b*2] == rec[leader*2] -> m = 1; \
          if \
          :: size[b] > 1 && size[leader] > 1 && rec[b*2+1] == rec[leader*2+1] -> m = 2 \
          :: else \
          fi \
       :: else \
       fi; \
       size[b] = m; \
       if :: m < 2 -> rec[b*2+1] = 0 :: else fi; \
       if :: m < 1 -> rec[b*2] = 0 :: else fi; \
       if :: mark[b] > m -> mark[b] = m :: else fi; \
       ep[b] = epoch; rq[b] = 1; rqe[b] = epoch; rqo[b] = m }

init {
  d_step {
    isr[0] = 1; isr[1] = 1; isr[2] = 1; tisr[0] = 1; tisr[1] = 1; tisr[2] = 1;
    pseudo[0] = 1; pseudo[1] = 1; pseudo[2] = 1; rq[1] = 2; rq[2] = 2
  };
  do
  ACTIONS(0)
  ACTIONS(1)
  ACTIONS(2)
  od
}
