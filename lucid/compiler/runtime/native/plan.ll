; A Plan is threaded code: one table of instructions, run by @run. All fields are 64-bit words.
;
; plan:   0 instructions  1 end of the main sequence  2 cells  3 words  4 template of the words
;         5 patches  6 end of arena patches  7 end of argument patches  8 inputs  9 outputs
;         10 input specs  11 output specs  12 arena bytes  13 arena is shared  14 free frames
;         15 release the GIL  16 timers or 0  17 operations of loops and branches
; frame:  0 next free  1 plan  2 arena  3 thread state  4 fuel  5 deadline  6 status  7 timers
;         8.. cells (0 is the arena, then inputs, outputs and carries of loops), then words
; patch:  word, cell, offset:  words[word] = cells[cell] + offset
; instruction (16 words):
;   0 call      1 function  2 args  3 extent  5 cost
;   1 parallel  1 function  2 args  3 extent  4 grain  5 cost of a chunk
;   2 branch    2 word of the predicate's address  3 branches  4 its bytes  6 op: (begin, end)...
;   3 loop      1 word of the counter or -1  2 word of the predicate or -1  3 trips or -1
;               6, 7 body  8, 9 predicate's sequence  10, 11 ops at entry: (cell, source, offset)
;               12, 13 ops at each step: (cell, other, stride)  14, 15 patches
;   4 native loop  1 function(args, frame, address of lucid_check)  2 args
;               In a loop, a source or other of -2 - c reads the address stored at cell c + offset.
;   5 stop      2 word of the address of an integer: the sequence ends here unless it is zero
;
; A frame belongs to one call at a time, which makes a Plan safe to call from many threads.

declare i32 @clock_gettime(i32, ptr) nounwind
declare ptr @PyEval_SaveThread() nounwind
declare void @PyEval_RestoreThread(ptr) nounwind
declare i32 @PyErr_CheckSignals() nounwind

define internal i64 @field(ptr %struct, i64 %i) nounwind alwaysinline {
  %p = getelementptr i64, ptr %struct, i64 %i
  %v = load i64, ptr %p
  ret i64 %v
}

define internal ptr @pointer_field(ptr %struct, i64 %i) nounwind alwaysinline {
  %p = getelementptr i64, ptr %struct, i64 %i
  %v = load ptr, ptr %p
  ret ptr %v
}

define internal void @set_field(ptr %struct, i64 %i, i64 %value) nounwind alwaysinline {
  %p = getelementptr i64, ptr %struct, i64 %i
  store i64 %value, ptr %p
  ret void
}

define internal ptr @cells(ptr %frame) nounwind alwaysinline {
  %p = getelementptr i64, ptr %frame, i64 8
  ret ptr %p
}

define internal ptr @words(ptr %frame) nounwind alwaysinline {
  %plan = call ptr @pointer_field(ptr %frame, i64 1)
  %n = call i64 @field(ptr %plan, i64 2)
  %cells = call ptr @cells(ptr %frame)
  %p = getelementptr i64, ptr %cells, i64 %n
  ret ptr %p
}

define internal i64 @now() nounwind {
  %t = alloca [2 x i64]
  call i32 @clock_gettime(i32 $CLOCK_MONOTONIC, ptr %t)
  %s = call i64 @field(ptr %t, i64 0)
  %ns = call i64 @field(ptr %t, i64 1)
  %seconds = mul i64 %s, 1000000000
  %sum = add i64 %seconds, %ns
  ret i64 %sum
}

; Count `cost` nanoseconds of work. About every $CLOCK_CHECK_NS of them read the clock, and every
; $SIGNAL_CHECK_NS take the GIL and let Python run its signal handlers (Ctrl-C). Non-zero: stop; the
; Python error is set.
define internal i64 @tick(ptr %frame, i64 %cost) nounwind alwaysinline {
  %fuel = call i64 @field(ptr %frame, i64 4)
  %left = sub i64 %fuel, %cost
  call void @set_field(ptr %frame, i64 4, i64 %left)
  %empty = icmp slt i64 %left, 0
  br i1 %empty, label %look, label %done
look:
  call void @check_signals(ptr %frame)
  br label %done
done:
  %status = call i64 @field(ptr %frame, i64 6)
  ret i64 %status
}

define internal void @check_signals(ptr %frame) nounwind noinline {
entry:
  call void @set_field(ptr %frame, i64 4, i64 $CLOCK_CHECK_NS)
  %now = call i64 @now()
  %deadline = call i64 @field(ptr %frame, i64 5)
  %first = icmp eq i64 %deadline, 0
  %due = icmp sge i64 %now, %deadline
  br i1 %first, label %postpone, label %compare
compare:
  br i1 %due, label %listen, label %done
listen:
  %state = call ptr @pointer_field(ptr %frame, i64 3)
  %held = icmp eq ptr %state, null
  br i1 %held, label %listen_held, label %listen_released
listen_held:
  %error1 = call i32 @PyErr_CheckSignals()
  br label %judge
listen_released:
  call void @PyEval_RestoreThread(ptr %state)
  %error2 = call i32 @PyErr_CheckSignals()
  %state2 = call ptr @PyEval_SaveThread()
  br label %judge
judge:
  %error = phi i32 [ %error1, %listen_held ], [ %error2, %listen_released ]
  %status = sext i32 %error to i64
  call void @set_field(ptr %frame, i64 6, i64 %status)
  br label %postpone
postpone:
  %later = add i64 %now, $SIGNAL_CHECK_NS
  call void @set_field(ptr %frame, i64 5, i64 %later)
  br label %done
done:
  ret void
}

; For native loops: check for signals as above; non-zero: stop.
define internal i64 @lucid_check(ptr %frame) nounwind {
  call void @check_signals(ptr %frame)
  %status = call i64 @field(ptr %frame, i64 6)
  ret i64 %status
}

; Apply the patches [begin, end).
define internal void @patch(ptr %frame, i64 %begin, i64 %end) nounwind alwaysinline {
entry:
  %plan = call ptr @pointer_field(ptr %frame, i64 1)
  %patches = call ptr @pointer_field(ptr %plan, i64 5)
  %cells = call ptr @cells(ptr %frame)
  %words = call ptr @words(ptr %frame)
  br label %next
next:
  %i = phi i64 [ %begin, %entry ], [ %i1, %apply ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %apply, label %done
apply:
  %at = mul i64 %i, 3
  %p = getelementptr i64, ptr %patches, i64 %at
  %word = call i64 @field(ptr %p, i64 0)
  %cell = call i64 @field(ptr %p, i64 1)
  %offset = call i64 @field(ptr %p, i64 2)
  %base = call i64 @field(ptr %cells, i64 %cell)
  %value = add i64 %base, %offset
  call void @set_field(ptr %words, i64 %word, i64 %value)
  %i1 = add i64 %i, 1
  br label %next
done:
  ret void
}

; Load the address stored at cells[-2 - source] + offset.
define internal i64 @read_address(ptr %cells, i64 %source, i64 %offset) nounwind alwaysinline {
  %cell = sub i64 -2, %source
  %base = call i64 @field(ptr %cells, i64 %cell)
  %place = add i64 %base, %offset
  %p = inttoptr i64 %place to ptr
  %v = load i64, ptr %p
  ret i64 %v
}

; Set cells[cell] = cells[source] + offset for the operations [begin, end).
define internal void @enter_loop(ptr %frame, ptr %ops, i64 %begin, i64 %end) nounwind {
entry:
  %cells = call ptr @cells(ptr %frame)
  br label %next
next:
  %i = phi i64 [ %begin, %entry ], [ %i1, %set ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %apply, label %done
apply:
  %op = getelementptr i64, ptr %ops, i64 %i
  %cell = call i64 @field(ptr %op, i64 0)
  %source = call i64 @field(ptr %op, i64 1)
  %offset = call i64 @field(ptr %op, i64 2)
  %reads = icmp slt i64 %source, 0
  br i1 %reads, label %read, label %move
read:
  %value1 = call i64 @read_address(ptr %cells, i64 %source, i64 %offset)
  br label %set
move:
  %base = call i64 @field(ptr %cells, i64 %source)
  %value2 = add i64 %base, %offset
  br label %set
set:
  %value = phi i64 [ %value1, %read ], [ %value2, %move ]
  call void @set_field(ptr %cells, i64 %cell, i64 %value)
  %i1 = add i64 %i, 3
  br label %next
done:
  ret void
}

; Swap cells (cell, other), advance a cell by its stride if other is -1, or load an address.
define internal void @step_loop(ptr %frame, ptr %ops, i64 %begin, i64 %end) nounwind {
entry:
  %cells = call ptr @cells(ptr %frame)
  br label %next
next:
  %i = phi i64 [ %begin, %entry ], [ %i1, %swap ], [ %i1, %advance ], [ %i1, %read ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %apply, label %done
apply:
  %i1 = add i64 %i, 3
  %op = getelementptr i64, ptr %ops, i64 %i
  %cell = call i64 @field(ptr %op, i64 0)
  %other = call i64 @field(ptr %op, i64 1)
  %value = call i64 @field(ptr %cells, i64 %cell)
  %single = icmp eq i64 %other, -1
  %reads = icmp slt i64 %other, -1
  br i1 %reads, label %read, label %choose
choose:
  br i1 %single, label %advance, label %swap
read:
  %offset = call i64 @field(ptr %op, i64 2)
  %address = call i64 @read_address(ptr %cells, i64 %other, i64 %offset)
  call void @set_field(ptr %cells, i64 %cell, i64 %address)
  br label %next
swap:
  %value2 = call i64 @field(ptr %cells, i64 %other)
  call void @set_field(ptr %cells, i64 %cell, i64 %value2)
  call void @set_field(ptr %cells, i64 %other, i64 %value)
  br label %next
advance:
  %stride = call i64 @field(ptr %op, i64 2)
  %moved = add i64 %value, %stride
  call void @set_field(ptr %cells, i64 %cell, i64 %moved)
  br label %next
done:
  ret void
}

; Load the integer (1, 4 or 8 bytes) at the address in a word.
define internal i64 @read_integer(ptr %words, i64 %word, i64 %bytes) nounwind {
  %p = call ptr @pointer_field(ptr %words, i64 %word)
  switch i64 %bytes, label %eight [ i64 1, label %one
                                    i64 4, label %four ]
one:
  %v1 = load i8, ptr %p
  %w1 = zext i8 %v1 to i64
  ret i64 %w1
four:
  %v4 = load i32, ptr %p
  %w4 = sext i32 %v4 to i64
  ret i64 %w4
eight:
  %v8 = load i64, ptr %p
  ret i64 %v8
}

define internal void @run_branch(ptr %frame, ptr %words, ptr %ins, ptr %ops) nounwind {
  %word = call i64 @field(ptr %ins, i64 2)
  %count = call i64 @field(ptr %ins, i64 3)
  %bytes = call i64 @field(ptr %ins, i64 4)
  %table = call i64 @field(ptr %ins, i64 6)
  %chosen = call i64 @read_integer(ptr %words, i64 %word, i64 %bytes)
  %last = sub i64 %count, 1
  %low = call i64 @llvm.smin.i64(i64 %chosen, i64 %last)
  %negative = icmp slt i64 %low, 0
  %index = select i1 %negative, i64 0, i64 %low
  %twice = mul i64 %index, 2
  %at = add i64 %table, %twice
  %op = getelementptr i64, ptr %ops, i64 %at
  %begin = call i64 @field(ptr %op, i64 0)
  %end = call i64 @field(ptr %op, i64 1)
  call void @run(ptr %frame, i64 %begin, i64 %end)
  ret void
}

define internal void @run_loop(ptr %frame, ptr %words, ptr %ins, ptr %ops) nounwind {
entry:
  %counter = call i64 @field(ptr %ins, i64 1)
  %predicate = call i64 @field(ptr %ins, i64 2)
  %trips = call i64 @field(ptr %ins, i64 3)
  %body = call i64 @field(ptr %ins, i64 6)
  %body_end = call i64 @field(ptr %ins, i64 7)
  %test = call i64 @field(ptr %ins, i64 8)
  %test_end = call i64 @field(ptr %ins, i64 9)
  %enter = call i64 @field(ptr %ins, i64 10)
  %enter_end = call i64 @field(ptr %ins, i64 11)
  %step = call i64 @field(ptr %ins, i64 12)
  %step_end = call i64 @field(ptr %ins, i64 13)
  %patches = call i64 @field(ptr %ins, i64 14)
  %patches_end = call i64 @field(ptr %ins, i64 15)
  %counts = icmp sge i64 %counter, 0
  %bounded = icmp sge i64 %trips, 0
  %tests = icmp sge i64 %predicate, 0
  call void @enter_loop(ptr %frame, ptr %ops, i64 %enter, i64 %enter_end)
  call void @patch(ptr %frame, i64 %patches, i64 %patches_end)
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %again ]
  %over = icmp sge i64 %i, %trips
  %finished = and i1 %bounded, %over
  br i1 %finished, label %done, label %count
count:
  br i1 %counts, label %write_counter, label %ask
write_counter:
  %p = call ptr @pointer_field(ptr %words, i64 %counter)
  store i64 %i, ptr %p
  br label %ask
ask:
  br i1 %tests, label %evaluate, label %iterate
evaluate:
  call void @run(ptr %frame, i64 %test, i64 %test_end)
  %answer = call i64 @read_integer(ptr %words, i64 %predicate, i64 1)
  %go_on = icmp ne i64 %answer, 0
  br i1 %go_on, label %iterate, label %done
iterate:
  call void @run(ptr %frame, i64 %body, i64 %body_end)
  %status = call i64 @tick(ptr %frame, i64 10)
  %fine = icmp eq i64 %status, 0
  br i1 %fine, label %again, label %done
again:
  %i1 = add i64 %i, 1
  call void @step_loop(ptr %frame, ptr %ops, i64 %step, i64 %step_end)
  call void @patch(ptr %frame, i64 %patches, i64 %patches_end)
  br label %next
done:
  ret void
}

; Run the instructions [begin, end).
define internal void @run(ptr %frame, i64 %begin, i64 %end) nounwind {
entry:
  %plan = call ptr @pointer_field(ptr %frame, i64 1)
  %instructions = call ptr @pointer_field(ptr %plan, i64 0)
  %ops = call ptr @pointer_field(ptr %plan, i64 17)
  %words = call ptr @words(ptr %frame)
  %timers = call ptr @pointer_field(ptr %frame, i64 7)
  %timed = icmp ne ptr %timers, null
  br label %next
next:
  %pc = phi i64 [ %begin, %entry ], [ %pc1, %advance ]
  %more = icmp slt i64 %pc, %end
  br i1 %more, label %fetch, label %done
fetch:
  %at = mul i64 %pc, 16
  %ins = getelementptr i64, ptr %instructions, i64 %at
  %kind = call i64 @field(ptr %ins, i64 0)
  br i1 %timed, label %start_timer, label %dispatch
start_timer:
  %t0 = call i64 @now()
  br label %dispatch
dispatch:
  %started = phi i64 [ 0, %fetch ], [ %t0, %start_timer ]
  %function = call ptr @pointer_field(ptr %ins, i64 1)
  %first = call i64 @field(ptr %ins, i64 2)
  %args = getelementptr i64, ptr %words, i64 %first
  %extent = call i64 @field(ptr %ins, i64 3)
  %grain = call i64 @field(ptr %ins, i64 4)
  %cost = call i64 @field(ptr %ins, i64 5)
  switch i64 %kind, label %call [ i64 1, label %parallel
                                  i64 2, label %branch
                                  i64 3, label %loop
                                  i64 4, label %native
                                  i64 5, label %stop ]
call:
  call void %function(ptr %args, i64 0, i64 %extent)
  call i64 @tick(ptr %frame, i64 %cost)
  br label %finish
parallel:
  call void @parallel_for(ptr %frame, ptr %function, ptr %args, i64 %extent, i64 %grain, i64 %cost)
  br label %finish
branch:
  call void @run_branch(ptr %frame, ptr %words, ptr %ins, ptr %ops)
  br label %finish
loop:
  call void @run_loop(ptr %frame, ptr %words, ptr %ins, ptr %ops)
  br label %finish
native:
  call void %function(ptr %args, ptr %frame, ptr @lucid_check)
  br label %finish
stop:
  %code = call i64 @read_integer(ptr %words, i64 %first, i64 8)
  %passed = icmp eq i64 %code, 0
  br i1 %passed, label %finish, label %done
finish:
  br i1 %timed, label %stop_timer, label %advance
stop_timer:
  %t1 = call i64 @now()
  %elapsed = sub i64 %t1, %started
  %slot = mul i64 %pc, 2
  %timer = getelementptr i64, ptr %timers, i64 %slot
  %total = getelementptr i64, ptr %timer, i64 1
  atomicrmw add ptr %timer, i64 1 monotonic
  atomicrmw add ptr %total, i64 %elapsed monotonic
  br label %advance
advance:
  %pc1 = add i64 %pc, 1
  %status = call i64 @field(ptr %frame, i64 6)
  %fine = icmp eq i64 %status, 0
  br i1 %fine, label %next, label %done
done:
  ret void
}
