; The thread pool: parallel_for(frame, kernel, args, extent, grain, cost) runs
; kernel(args, lo, hi) for every chunk [lo, hi) of [0, extent), each `grain` long.
;
; Chunks depend only on the extent and the grain and write disjoint results, so it does not matter
; which thread claims which: results are bitwise equal for any number of threads.
;
; The pool runs one job at a time. A caller that finds it busy (another Python thread, or a kernel that
; calls parallel_for itself) runs its chunks on its own thread. A worker *joins* an open job; when no
; chunk is left, the caller closes the job and waits only for workers that joined. It never waits for a
; worker that the system has not woken yet, so a busy core causes no stall.
;
; Waking a worker costs the caller about 10 µs, so a job wakes them only when the work done while they
; slept adds up to $WAKE_NS ns.
;
; state = generation << 32 | open << 31 | number of workers inside

@state    = internal global i64 0, align 64
@next     = internal global i64 0, align 64      ; the next chunk to claim
@stop     = internal global i32 0, align 64      ; set when the job is to be given up
@busy     = internal global i32 0, align 64
@sleepers = internal global i32 0, align 64
@threads  = internal global i64 1                ; wanted, the caller included
@started  = internal global i64 0                ; workers that exist
@missed   = internal global i64 0                ; estimated ns of work done while workers slept
@spins    = internal global i64 $SPINS          ; pauses before a worker goes to sleep

@job_kernel = internal global ptr null, align 64
@job_args   = internal global ptr null
@job_extent = internal global i64 0
@job_grain  = internal global i64 0
@job_chunks = internal global i64 0
@job_cost   = internal global i64 0

@mutex   = internal global [16 x i64] zeroinitializer, align 64
@changed = internal global [16 x i64] zeroinitializer, align 64

declare i32 @pthread_create(ptr, ptr, ptr, ptr) nounwind
declare i32 @pthread_detach(i64) nounwind
declare i32 @pthread_sigmask(i32, ptr, ptr) nounwind
declare i32 @sigfillset(ptr) nounwind
declare i32 @pthread_mutex_init(ptr, ptr) nounwind
declare i32 @pthread_mutex_lock(ptr) nounwind
declare i32 @pthread_mutex_unlock(ptr) nounwind
declare i32 @pthread_cond_init(ptr, ptr) nounwind
declare i32 @pthread_cond_wait(ptr, ptr) nounwind
declare i32 @pthread_cond_signal(ptr) nounwind
declare i32 @sched_yield() nounwind
declare i64 @llvm.smin.i64(i64, i64)

define void @lucid_set_num_threads(i64 %n) nounwind {
  store atomic i64 %n, ptr @threads seq_cst, align 8
  ret void
}

define void @lucid_set_spins(i64 %n) nounwind {
  store atomic i64 %n, ptr @spins seq_cst, align 8
  ret void
}

; Reset the pool in a new process and in the child of a fork: no workers, no locks held.
define void @lucid_reset_pool() nounwind {
  store i64 0, ptr @state
  store i32 0, ptr @busy
  store i32 0, ptr @sleepers
  store i64 0, ptr @started
  call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  call i32 @pthread_cond_init(ptr @changed, ptr null)
  ret void
}

define internal void @run_chunk(ptr %kernel, ptr %args, i64 %chunk, i64 %grain, i64 %extent)
    nounwind alwaysinline {
  %lo = mul i64 %chunk, %grain
  %end = add i64 %lo, %grain
  %hi = call i64 @llvm.smin.i64(i64 %end, i64 %extent)
  call void %kernel(ptr %args, i64 %lo, i64 %hi)
  ret void
}

; Claim and run chunks until none is left. `frame` is null in a worker: only the calling thread
; counts the cost and checks for signals.
define internal void @work(ptr %frame) nounwind {
entry:
  %kernel = load ptr, ptr @job_kernel
  %args = load ptr, ptr @job_args
  %extent = load i64, ptr @job_extent
  %grain = load i64, ptr @job_grain
  %chunks = load i64, ptr @job_chunks
  %cost = load i64, ptr @job_cost
  %is_worker = icmp eq ptr %frame, null
  br label %claim
claim:
  %stop = load atomic i32, ptr @stop monotonic, align 4
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %done, label %take
take:
  %chunk = atomicrmw add ptr @next, i64 1 monotonic
  %none = icmp sge i64 %chunk, %chunks
  br i1 %none, label %done, label %run
run:
  call void @run_chunk(ptr %kernel, ptr %args, i64 %chunk, i64 %grain, i64 %extent)
  br i1 %is_worker, label %claim, label %count
count:
  %status = call i64 @tick(ptr %frame, i64 %cost)
  %fine = icmp eq i64 %status, 0
  br i1 %fine, label %claim, label %give_up
give_up:
  store atomic i32 1, ptr @stop monotonic, align 4
  br label %done
done:
  ret void
}

define internal ptr @worker(ptr %unused) nounwind {
entry:
  br label %wait
wait:
  %seen = phi i64 [ -1, %entry ], [ %g2, %pass ], [ %g2, %leave ]
  %spins = load atomic i64, ptr @spins monotonic, align 8
  br label %spin
spin:
  %k = phi i64 [ 0, %wait ], [ %k1, %pause_on ], [ %k1, %polite ]
  %s0 = load atomic i64, ptr @state acquire, align 64
  %g0 = lshr i64 %s0, 32
  %new0 = icmp ne i64 %g0, %seen
  br i1 %new0, label %consider, label %pause
pause:
  call void asm sideeffect "$PAUSE", "~{memory}"()
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %spins
  br i1 %more, label %pause_on, label %sleep
pause_on:
  %part = and i64 %k1, 63
  %due = icmp eq i64 %part, 0
  br i1 %due, label %polite, label %spin
polite:                                          ; the caller may be waiting for this very core
  call i32 @sched_yield()
  br label %spin
sleep:
  call i32 @pthread_mutex_lock(ptr @mutex)
  atomicrmw add ptr @sleepers, i32 1 seq_cst
  br label %check
check:
  %s1 = load atomic i64, ptr @state seq_cst, align 64
  %g1 = lshr i64 %s1, 32
  %new1 = icmp ne i64 %g1, %seen
  br i1 %new1, label %wake, label %doze
doze:
  call i32 @pthread_cond_wait(ptr @changed, ptr @mutex)
  br label %check
wake:
  atomicrmw sub ptr @sleepers, i32 1 seq_cst
  call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %consider
consider:
  %s2 = phi i64 [ %s0, %spin ], [ %s1, %wake ], [ %s3, %join ]
  %g2 = lshr i64 %s2, 32
  %open = and i64 %s2, 2147483648
  %is_open = icmp ne i64 %open, 0
  %inside = and i64 %s2, 2147483647
  %wanted = load atomic i64, ptr @threads monotonic, align 8
  %limit = sub i64 %wanted, 1
  %room = icmp slt i64 %inside, %limit
  %may = and i1 %is_open, %room
  br i1 %may, label %join, label %pass
pass:
  br label %wait
join:
  %more_inside = add i64 %s2, 1
  %swap = cmpxchg ptr @state, i64 %s2, i64 %more_inside acq_rel acquire
  %s3 = extractvalue { i64, i1 } %swap, 0
  %joined = extractvalue { i64, i1 } %swap, 1
  br i1 %joined, label %leave, label %consider
leave:
  call void @work(ptr null)
  atomicrmw sub ptr @state, i64 1 release
  br label %wait
}

; Create workers until there are threads - 1. They block all signals, which Python handles.
define internal void @start_workers() nounwind noinline {
entry:
  %all = alloca [16 x i64], align 16
  %before = alloca [16 x i64], align 16
  %thread = alloca i64
  call i32 @sigfillset(ptr %all)
  call i32 @pthread_sigmask(i32 $SIG_SETMASK, ptr %all, ptr %before)
  br label %next
next:
  %have = load i64, ptr @started
  %wanted = load i64, ptr @threads
  %limit = sub i64 %wanted, 1
  %enough = icmp sge i64 %have, %limit
  br i1 %enough, label %done, label %create
create:
  %error = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr null)
  %failed = icmp ne i32 %error, 0
  br i1 %failed, label %fewer, label %created
created:
  %id = load i64, ptr %thread
  call i32 @pthread_detach(i64 %id)
  %more = add i64 %have, 1
  store i64 %more, ptr @started
  br label %next
fewer:                                           ; make do with what the system gives
  %total = add i64 %have, 1
  store i64 %total, ptr @threads
  br label %done
done:
  call i32 @pthread_sigmask(i32 $SIG_SETMASK, ptr %before, ptr null)
  ret void
}

define internal void @wake_sleepers(i64 %useful) nounwind noinline {
entry:
  call i32 @pthread_mutex_lock(ptr @mutex)
  %asleep = load atomic i32, ptr @sleepers seq_cst, align 4
  %count = sext i32 %asleep to i64
  %n = call i64 @llvm.smin.i64(i64 %count, i64 %useful)
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %signal ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %signal, label %done
signal:
  call i32 @pthread_cond_signal(ptr @changed)
  %i1 = add i64 %i, 1
  br label %next
done:
  call i32 @pthread_mutex_unlock(ptr @mutex)
  ret void
}

define internal void @serial_for(ptr %frame, ptr %kernel, ptr %args, i64 %extent, i64 %grain,
                                 i64 %chunks, i64 %cost) nounwind {
entry:
  br label %next
next:
  %chunk = phi i64 [ 0, %entry ], [ %chunk1, %run ]
  %more = icmp slt i64 %chunk, %chunks
  br i1 %more, label %run, label %done
run:
  call void @run_chunk(ptr %kernel, ptr %args, i64 %chunk, i64 %grain, i64 %extent)
  %chunk1 = add i64 %chunk, 1
  %status = call i64 @tick(ptr %frame, i64 %cost)
  %fine = icmp eq i64 %status, 0
  br i1 %fine, label %next, label %done
done:
  ret void
}

define internal void @parallel_for(ptr %frame, ptr %kernel, ptr %args, i64 %extent, i64 %grain,
                                   i64 %cost) nounwind {
entry:
  %padded = add i64 %extent, %grain
  %last = sub i64 %padded, 1
  %chunks = sdiv i64 %last, %grain
  %threads = load atomic i64, ptr @threads monotonic, align 8
  %workers = sub i64 %threads, 1
  %one_chunk = icmp sle i64 %chunks, 1
  %one_thread = icmp sle i64 %threads, 1
  %alone = or i1 %one_chunk, %one_thread
  br i1 %alone, label %serial, label %acquire
acquire:
  %lock = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic
  %free = extractvalue { i32, i1 } %lock, 1
  br i1 %free, label %prepare, label %serial
serial:
  call void @serial_for(ptr %frame, ptr %kernel, ptr %args, i64 %extent, i64 %grain, i64 %chunks,
                        i64 %cost)
  ret void
prepare:
  %have = load i64, ptr @started
  %enough = icmp sge i64 %have, %workers
  br i1 %enough, label %publish, label %start
start:
  call void @start_workers()
  br label %publish
publish:
  store ptr %kernel, ptr @job_kernel
  store ptr %args, ptr @job_args
  store i64 %extent, ptr @job_extent
  store i64 %grain, ptr @job_grain
  store i64 %chunks, ptr @job_chunks
  store i64 %cost, ptr @job_cost
  store atomic i64 0, ptr @next monotonic, align 64
  store atomic i32 0, ptr @stop monotonic, align 4
  %old = load atomic i64, ptr @state monotonic, align 64
  %generation = lshr i64 %old, 32
  %later = add i64 %generation, 1
  %high = shl i64 %later, 32
  %fresh = or i64 %high, 2147483648
  store atomic i64 %fresh, ptr @state seq_cst, align 64
  %asleep = load atomic i32, ptr @sleepers seq_cst, align 4
  %none_asleep = icmp eq i32 %asleep, 0
  br i1 %none_asleep, label %join, label %weigh
weigh:
  %before = load i64, ptr @missed
  %size = mul i64 %chunks, %cost
  %missed = add i64 %before, %size
  %worth = icmp sge i64 %missed, $WAKE_NS
  %remembered = select i1 %worth, i64 0, i64 %missed
  store i64 %remembered, ptr @missed
  br i1 %worth, label %wake, label %join
wake:
  %others = sub i64 %chunks, 1
  %useful = call i64 @llvm.smin.i64(i64 %others, i64 %workers)
  call void @wake_sleepers(i64 %useful)
  br label %join
join:
  call void @work(ptr %frame)
  atomicrmw and ptr @state, i64 -2147483649 acq_rel      ; close: nobody joins any more
  br label %wait
wait:
  %k = phi i64 [ 0, %join ], [ %k1, %pause ], [ %k1, %yield ]
  %now = load atomic i64, ptr @state acquire, align 64
  %inside = and i64 %now, 2147483647
  %empty = icmp eq i64 %inside, 0
  br i1 %empty, label %done, label %pause
pause:
  call void asm sideeffect "$PAUSE", "~{memory}"()
  %k1 = add i64 %k, 1
  %long = icmp sgt i64 %k1, 200
  br i1 %long, label %yield, label %wait
yield:                                           ; the worker may need this very core
  call i32 @sched_yield()
  br label %wait
done:
  store atomic i32 0, ptr @busy release, align 4
  ret void
}
