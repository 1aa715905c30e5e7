; Calls a Plan from Python: lucid_call is the body of a built-in function (METH_FASTCALL) whose self is
; an ndarray that holds the plan. It checks the arguments against the plan's specs by reading the
; ndarray structs, allocates the outputs, patches the addresses in and runs the plan. It returns the
; tuple of outputs, None if an argument is not as expected (the caller then takes the slow path), or
; null with the Python error set.
;
; ndarray: +8 type  +16 data  +24 int ndim  +32 dimensions  +56 dtype  +64 int flags
; dtype:   +26 char byte order  +28 int type number

declare noalias ptr @aligned_alloc(i64, i64) nounwind
declare void @free(ptr) nounwind
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare ptr @PyErr_NoMemory() nounwind
declare ptr @PyTuple_New(i64) nounwind
declare i32 @PyTuple_SetItem(ptr, i64, ptr) nounwind
declare void @Py_IncRef(ptr) nounwind
declare void @Py_DecRef(ptr) nounwind
declare ptr @lucid_new_array(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr) nounwind
declare ptr @lucid_set_memory_handler(ptr) nounwind
@lucid_array_type = external global i8
@_Py_NoneStruct = external global i8

; Arenas of plans that share them: a stack of free blocks. block: 0 next  1 bytes  8.. the arena
@arenas = internal global ptr null

; A large block has huge pages, of which the first use takes a 500th of the page faults.
define internal ptr @new_block(i64 %bytes) nounwind {
entry:
  %with_header = add i64 %bytes, 127
  %size = and i64 %with_header, -64
  %block = call ptr @aligned_alloc(i64 64, i64 %size)
  %small = icmp ult i64 %size, $ADVISED_FROM
  %failed = icmp eq ptr %block, null
  %done_already = or i1 %small, %failed
  br i1 %done_already, label %done, label %advise
advise:
  %address = ptrtoint ptr %block to i64
  %first_up = add i64 %address, $HUGE_PAGE_LAST
  %first = and i64 %first_up, -$HUGE_PAGE
  %last_up = add i64 %address, %size
  %last = and i64 %last_up, -$HUGE_PAGE
  %within = sub i64 %last, %first
  %huge = inttoptr i64 %first to ptr
  call i32 @madvise(ptr %huge, i64 %within, i32 $MADV_HUGEPAGE)
  br label %done
done:
  ret ptr %block
}

; Take the top block if it is large enough, else replace it by a new one. Null: out of memory.
define internal ptr @take_arena(i64 %bytes) nounwind {
entry:
  %top = load ptr, ptr @arenas
  %none = icmp eq ptr %top, null
  br i1 %none, label %create, label %pop
pop:
  %next = load ptr, ptr %top
  store ptr %next, ptr @arenas
  %size = call i64 @field(ptr %top, i64 1)
  %large = icmp sge i64 %size, %bytes
  br i1 %large, label %reuse, label %drop
reuse:
  ret ptr %top
drop:
  call void @free(ptr %top)
  br label %create
create:
  %block = call ptr @new_block(i64 %bytes)
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %done, label %label_it
label_it:
  call void @set_field(ptr %block, i64 1, i64 %bytes)
  br label %done
done:
  ret ptr %block
}

define internal void @give_arena(ptr %block) nounwind {
  %top = load ptr, ptr @arenas
  store ptr %top, ptr %block
  store ptr %block, ptr @arenas
  ret void
}

; Return all free shared arenas to the system.
define void @lucid_release_memory() nounwind {
entry:
  br label %next
next:
  %top = load ptr, ptr @arenas
  %none = icmp eq ptr %top, null
  br i1 %none, label %done, label %drop
drop:
  %rest = load ptr, ptr %top
  store ptr %rest, ptr @arenas
  call void @free(ptr %top)
  br label %next
done:
  ret void
}

define internal void @set_arena(ptr %frame, ptr %plan, ptr %block) nounwind {
  %base = getelementptr i8, ptr %block, i64 64
  %address = ptrtoint ptr %base to i64
  %block_address = ptrtoint ptr %block to i64
  call void @set_field(ptr %frame, i64 2, i64 %block_address)
  call void @set_field(ptr %frame, i64 8, i64 %address)
  %end = call i64 @field(ptr %plan, i64 6)
  call void @patch(ptr %frame, i64 0, i64 %end)
  ret void
}

; Create a frame with the plan's words, and its own arena unless arenas are shared. Null: out of memory.
define internal ptr @new_frame(ptr %plan) nounwind noinline {
entry:
  %n_cells = call i64 @field(ptr %plan, i64 2)
  %n_words = call i64 @field(ptr %plan, i64 3)
  %template = call ptr @pointer_field(ptr %plan, i64 4)
  %used = add i64 %n_cells, %n_words
  %total = add i64 %used, 15
  %lines = mul i64 %total, 8
  %size = and i64 %lines, -64
  %frame = call ptr @aligned_alloc(i64 64, i64 %size)
  %failed = icmp eq ptr %frame, null
  br i1 %failed, label %fail, label %fill
fill:
  call void @llvm.memset.p0.i64(ptr %frame, i8 0, i64 64, i1 false)
  %plan_address = ptrtoint ptr %plan to i64
  call void @set_field(ptr %frame, i64 1, i64 %plan_address)
  %words = call ptr @words(ptr %frame)
  %bytes = mul i64 %n_words, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %words, ptr %template, i64 %bytes, i1 false)
  %shared = call i64 @field(ptr %plan, i64 13)
  %is_shared = icmp ne i64 %shared, 0
  br i1 %is_shared, label %done, label %own
own:
  %arena_bytes = call i64 @field(ptr %plan, i64 12)
  %block = call ptr @new_block(i64 %arena_bytes)
  %no_block = icmp eq ptr %block, null
  br i1 %no_block, label %undo, label %place
place:
  call void @set_arena(ptr %frame, ptr %plan, ptr %block)
  br label %done
undo:
  call void @free(ptr %frame)
  br label %fail
fail:
  ret ptr null
done:
  ret ptr %frame
}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; Free the frames of a plan that is no longer called.
define void @lucid_free_frames(ptr %plan) nounwind {
entry:
  %shared = call i64 @field(ptr %plan, i64 13)
  %is_shared = icmp ne i64 %shared, 0
  br label %next
next:
  %frame = call ptr @pointer_field(ptr %plan, i64 14)
  %none = icmp eq ptr %frame, null
  br i1 %none, label %done, label %pop
pop:
  %rest = call i64 @field(ptr %frame, i64 0)
  call void @set_field(ptr %plan, i64 14, i64 %rest)
  br i1 %is_shared, label %drop, label %drop_arena
drop_arena:
  %block = call ptr @pointer_field(ptr %frame, i64 2)
  call void @free(ptr %block)
  br label %drop
drop:
  call void @free(ptr %frame)
  br label %next
done:
  ret void
}

; True if the object is a native, aligned, C-contiguous ndarray of the type and shape of the spec.
; spec: 0 type number  1 flags that must be set  2 ndim  3.. dimensions
define internal i1 @fits(ptr %object, ptr %spec) nounwind alwaysinline {
entry:
  %type = call ptr @pointer_field(ptr %object, i64 1)
  %is_array = icmp eq ptr %type, @lucid_array_type
  br i1 %is_array, label %check_dtype, label %no
check_dtype:
  %dtype = call ptr @pointer_field(ptr %object, i64 7)
  %order_at = getelementptr i8, ptr %dtype, i64 26
  %order = load i8, ptr %order_at
  %native = icmp ne i8 %order, 62                ; not '>'
  %number_at = getelementptr i8, ptr %dtype, i64 28
  %number = load i32, ptr %number_at
  %number64 = sext i32 %number to i64
  %wanted = call i64 @field(ptr %spec, i64 0)
  %same = icmp eq i64 %number64, %wanted
  %flags_at = getelementptr i8, ptr %object, i64 64
  %flags = load i32, ptr %flags_at
  %flags64 = zext i32 %flags to i64
  %mask = call i64 @field(ptr %spec, i64 1)
  %set = and i64 %flags64, %mask
  %flagged = icmp eq i64 %set, %mask
  %ndim_at = getelementptr i8, ptr %object, i64 24
  %ndim = load i32, ptr %ndim_at
  %ndim64 = sext i32 %ndim to i64
  %rank = call i64 @field(ptr %spec, i64 2)
  %same_rank = icmp eq i64 %ndim64, %rank
  %ok1 = and i1 %native, %same
  %ok2 = and i1 %flagged, %same_rank
  %ok = and i1 %ok1, %ok2
  %dims = call ptr @pointer_field(ptr %object, i64 4)
  %wanted_dims = getelementptr i64, ptr %spec, i64 3
  br i1 %ok, label %next, label %no
next:
  %i = phi i64 [ 0, %check_dtype ], [ %i1, %compare ]
  %more = icmp slt i64 %i, %rank
  br i1 %more, label %compare, label %yes
compare:
  %have = call i64 @field(ptr %dims, i64 %i)
  %want = call i64 @field(ptr %wanted_dims, i64 %i)
  %i1 = add i64 %i, 1
  %equal = icmp eq i64 %have, %want
  br i1 %equal, label %next, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

define internal i1 @bind_inputs(ptr %plan, ptr %frame, ptr %args) nounwind alwaysinline {
entry:
  %n = call i64 @field(ptr %plan, i64 8)
  %specs = call ptr @pointer_field(ptr %plan, i64 10)
  %cells = call ptr @cells(ptr %frame)
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %bind ]
  %spec = phi ptr [ %specs, %entry ], [ %spec1, %bind ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %check, label %yes
check:
  %object = call ptr @pointer_field(ptr %args, i64 %i)
  %fits = call i1 @fits(ptr %object, ptr %spec)
  br i1 %fits, label %bind, label %no
bind:
  %data = call i64 @field(ptr %object, i64 2)
  %i1 = add i64 %i, 1
  call void @set_field(ptr %cells, i64 %i1, i64 %data)
  %rank = call i64 @field(ptr %spec, i64 2)
  %length = add i64 %rank, 3
  %spec1 = getelementptr i64, ptr %spec, i64 %length
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}

; Create an array of NumPy; a large one in memory that earlier ones have freed.
define internal ptr @new_output(ptr %dtype, i32 %rank, ptr %dims, i1 %large) nounwind alwaysinline {
entry:
  br i1 %large, label %enter, label %create
enter:
  %capsule = load ptr, ptr @result_handler
  %before = call ptr @lucid_set_memory_handler(ptr %capsule)
  %failed = icmp eq ptr %before, null
  br i1 %failed, label %fail, label %create
create:
  %outer = phi ptr [ null, %entry ], [ %before, %enter ]
  call void @Py_IncRef(ptr %dtype)                ; the constructor steals it
  %array = call ptr @lucid_new_array(ptr @lucid_array_type, ptr %dtype, i32 %rank, ptr %dims,
                                     ptr null, ptr null, i32 0, ptr null)
  br i1 %large, label %leave, label %done
leave:
  %inner = call ptr @lucid_set_memory_handler(ptr %outer)
  call void @Py_DecRef(ptr %outer)
  call void @Py_DecRef(ptr %inner)
  br label %done
done:
  ret ptr %array
fail:
  ret ptr null
}

; spec: 0 the input whose memory it reuses, -1 for a new array, -2 for a large one  1 dtype  2 ndim
;       3.. dimensions
define internal i1 @bind_outputs(ptr %plan, ptr %frame, ptr %args, ptr %outputs) nounwind alwaysinline {
entry:
  %n = call i64 @field(ptr %plan, i64 9)
  %specs = call ptr @pointer_field(ptr %plan, i64 11)
  %n_inputs = call i64 @field(ptr %plan, i64 8)
  %cells = call ptr @cells(ptr %frame)
  br label %next
next:
  %j = phi i64 [ 0, %entry ], [ %j1, %bind ]
  %spec = phi ptr [ %specs, %entry ], [ %spec1, %bind ]
  %more = icmp slt i64 %j, %n
  br i1 %more, label %make, label %yes
make:
  %alias = call i64 @field(ptr %spec, i64 0)
  %rank = call i64 @field(ptr %spec, i64 2)
  %length = add i64 %rank, 3
  %spec1 = getelementptr i64, ptr %spec, i64 %length
  %fresh = icmp slt i64 %alias, 0
  br i1 %fresh, label %allocate, label %reuse
reuse:
  %input = call ptr @pointer_field(ptr %args, i64 %alias)
  call void @Py_IncRef(ptr %input)
  br label %bind
allocate:
  %dtype = call ptr @pointer_field(ptr %spec, i64 1)
  %dims = getelementptr i64, ptr %spec, i64 3
  %rank32 = trunc i64 %rank to i32
  %large = icmp eq i64 %alias, -2
  %array = call ptr @new_output(ptr %dtype, i32 %rank32, ptr %dims, i1 %large)
  %failed = icmp eq ptr %array, null
  br i1 %failed, label %no, label %bind
bind:
  %object = phi ptr [ %input, %reuse ], [ %array, %allocate ]
  call i32 @PyTuple_SetItem(ptr %outputs, i64 %j, ptr %object)
  %data = call i64 @field(ptr %object, i64 2)
  %j1 = add i64 %j, 1
  %cell = add i64 %n_inputs, %j1
  call void @set_field(ptr %cells, i64 %cell, i64 %data)
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}

; Run the plan in a bound frame, releasing the GIL if the plan is long enough for that to pay.
define internal void @execute(ptr %plan, ptr %frame) nounwind {
entry:
  %first = call i64 @field(ptr %plan, i64 6)
  %last = call i64 @field(ptr %plan, i64 7)
  call void @patch(ptr %frame, i64 %first, i64 %last)
  %timers = call i64 @field(ptr %plan, i64 16)
  %end = call i64 @field(ptr %plan, i64 1)
  call void @set_field(ptr %frame, i64 3, i64 0)
  call void @set_field(ptr %frame, i64 4, i64 $CLOCK_CHECK_NS)
  call void @set_field(ptr %frame, i64 5, i64 0)
  call void @set_field(ptr %frame, i64 6, i64 0)
  call void @set_field(ptr %frame, i64 7, i64 %timers)
  %release = call i64 @field(ptr %plan, i64 15)
  %held = icmp eq i64 %release, 0
  br i1 %held, label %run_held, label %run_released
run_held:
  call void @run(ptr %frame, i64 0, i64 %end)
  ret void
run_released:
  %state = call ptr @PyEval_SaveThread()
  %address = ptrtoint ptr %state to i64
  call void @set_field(ptr %frame, i64 3, i64 %address)
  call void @run(ptr %frame, i64 0, i64 %end)
  call void @PyEval_RestoreThread(ptr %state)
  ret void
}

; Everything here but @run holds the GIL, which guards frames and arenas.
define ptr @lucid_call(ptr %self, ptr %args, i64 %n_args) nounwind {
entry:
  %plan = call ptr @pointer_field(ptr %self, i64 2)
  %n_inputs = call i64 @field(ptr %plan, i64 8)
  %right_count = icmp eq i64 %n_args, %n_inputs
  br i1 %right_count, label %find_frame, label %unexpected
find_frame:
  %free = call ptr @pointer_field(ptr %plan, i64 14)
  %none = icmp eq ptr %free, null
  br i1 %none, label %create_frame, label %pop_frame
pop_frame:
  %rest = call i64 @field(ptr %free, i64 0)
  call void @set_field(ptr %plan, i64 14, i64 %rest)
  br label %bind
create_frame:
  %new = call ptr @new_frame(ptr %plan)
  %no_frame = icmp eq ptr %new, null
  br i1 %no_frame, label %no_memory, label %bind
bind:
  %frame = phi ptr [ %free, %pop_frame ], [ %new, %create_frame ]
  %bound = call i1 @bind_inputs(ptr %plan, ptr %frame, ptr %args)
  br i1 %bound, label %make_outputs, label %decline
decline:
  call void @push_frame(ptr %plan, ptr %frame)
  br label %unexpected
make_outputs:
  %n_outputs = call i64 @field(ptr %plan, i64 9)
  %outputs = call ptr @PyTuple_New(i64 %n_outputs)
  %no_tuple = icmp eq ptr %outputs, null
  br i1 %no_tuple, label %fail_frame, label %fill_outputs
fill_outputs:
  %filled = call i1 @bind_outputs(ptr %plan, ptr %frame, ptr %args, ptr %outputs)
  br i1 %filled, label %find_arena, label %fail_outputs
find_arena:
  %shared = call i64 @field(ptr %plan, i64 13)
  %own = icmp eq i64 %shared, 0
  br i1 %own, label %run_own, label %borrow
run_own:
  call void @execute(ptr %plan, ptr %frame)
  br label %finish
borrow:
  %bytes = call i64 @field(ptr %plan, i64 12)
  %block = call ptr @take_arena(i64 %bytes)
  %no_block = icmp eq ptr %block, null
  br i1 %no_block, label %no_arena, label %run_borrowed
run_borrowed:
  call void @set_arena(ptr %frame, ptr %plan, ptr %block)
  call void @execute(ptr %plan, ptr %frame)
  call void @give_arena(ptr %block)
  br label %finish
finish:
  %status = call i64 @field(ptr %frame, i64 6)
  %interrupted = icmp ne i64 %status, 0
  br i1 %interrupted, label %fail_outputs, label %succeed
succeed:
  call void @push_frame(ptr %plan, ptr %frame)
  ret ptr %outputs
no_arena:
  call ptr @PyErr_NoMemory()
  br label %fail_outputs
fail_outputs:
  call void @Py_DecRef(ptr %outputs)
  br label %fail_frame
fail_frame:
  call void @push_frame(ptr %plan, ptr %frame)
  ret ptr null
no_memory:
  %null = call ptr @PyErr_NoMemory()
  ret ptr null
unexpected:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
}

define internal void @push_frame(ptr %plan, ptr %frame) nounwind alwaysinline {
  %head = call i64 @field(ptr %plan, i64 14)
  call void @set_field(ptr %frame, i64 0, i64 %head)
  %address = ptrtoint ptr %frame to i64
  call void @set_field(ptr %plan, i64 14, i64 %address)
  ret void
}
