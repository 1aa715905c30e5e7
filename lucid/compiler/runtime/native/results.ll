; Memory of large results: a memory handler of NumPy (PyDataMem_Handler) that keeps freed blocks for
; results of the same size, whose pages then need not be mapped and cleared again. An array that was
; allocated through it owns its data, so views, buffers and DLPack capsules keep the block in use.
; NumPy calls these functions with the GIL, which guards the list.
;
; block: 0 next  1 bytes of the data  2 the count of allocations when it was freed  3 the mapping or 0
;        4 its bytes  8.. the data, which begins at a huge page if it was mapped

declare ptr @mmap(ptr, i64, i32, i32, i32, i64) nounwind
declare i32 @munmap(ptr, i64) nounwind
declare i32 @madvise(ptr, i64, i32) nounwind

@kept_blocks = internal global ptr null          ; the latest freed first
@kept_limit = internal global i64 0              ; bytes
@allocations = internal global i64 0
@result_handler = internal global ptr null       ; a capsule

define void @lucid_set_result_handler(ptr %capsule, i64 %limit) nounwind {
  store ptr %capsule, ptr @result_handler
  store i64 %limit, ptr @kept_limit
  ret void
}

; Map a block of at least $MAPPED_FROM bytes. Null: out of memory.
define internal ptr @map_block(i64 %bytes) nounwind {
entry:
  %data_up = add i64 %bytes, $HUGE_PAGE_LAST
  %data_bytes = and i64 %data_up, -$HUGE_PAGE
  %size = add i64 %data_bytes, $MAPPING_MORE
  %mapping = call ptr @mmap(ptr null, i64 %size, i32 3, i32 $MAP_PRIVATE_ANON, i32 -1, i64 0)
  %address = ptrtoint ptr %mapping to i64
  %failed = icmp eq i64 %address, -1
  br i1 %failed, label %fail, label %place
place:
  %up = add i64 %address, $MAPPING_MORE
  %aligned = and i64 %up, -$HUGE_PAGE
  %data = inttoptr i64 %aligned to ptr
  call i32 @madvise(ptr %data, i64 %data_bytes, i32 $MADV_HUGEPAGE)
  %block = getelementptr i64, ptr %data, i64 -8
  call void @set_field(ptr %block, i64 3, i64 %address)
  call void @set_field(ptr %block, i64 4, i64 %size)
  ret ptr %block
fail:
  ret ptr null
}

define internal void @drop_block(ptr %block) nounwind {
entry:
  %mapping = call ptr @pointer_field(ptr %block, i64 3)
  %allocated = icmp eq ptr %mapping, null
  br i1 %allocated, label %drop, label %unmap
drop:
  call void @free(ptr %block)
  ret void
unmap:
  %size = call i64 @field(ptr %block, i64 4)
  call i32 @munmap(ptr %mapping, i64 %size)
  ret void
}

; Free the end of the list: what exceeds the limit, or was not used by the latest allocations.
define internal void @trim_results(i64 %limit) nounwind {
entry:
  %now = load i64, ptr @allocations
  br label %next
next:
  %link = phi ptr [ @kept_blocks, %entry ], [ %block, %keep ]
  %sum = phi i64 [ 0, %entry ], [ %sum1, %keep ]
  %block = load ptr, ptr %link
  %end = icmp eq ptr %block, null
  br i1 %end, label %done, label %check
check:
  %bytes = call i64 @field(ptr %block, i64 1)
  %freed = call i64 @field(ptr %block, i64 2)
  %age = sub i64 %now, %freed
  %sum1 = add i64 %sum, %bytes
  %fits = icmp sle i64 %sum1, %limit
  %young = icmp sle i64 %age, $KEPT_ALLOCATIONS
  %kept = and i1 %fits, %young
  br i1 %kept, label %keep, label %cut
keep:
  br label %next
cut:
  store ptr null, ptr %link
  br label %drop
drop:
  %old = phi ptr [ %block, %cut ], [ %rest, %drop ]
  %rest = load ptr, ptr %old
  call void @drop_block(ptr %old)
  %last = icmp eq ptr %rest, null
  br i1 %last, label %done, label %drop
done:
  ret void
}

; Return all kept blocks to the system.
define void @lucid_release_results() nounwind {
  call void @trim_results(i64 0)
  ret void
}

; Remove a kept block of this size from the list, null if there is none.
define internal ptr @take_result(i64 %bytes) nounwind {
entry:
  br label %next
next:
  %link = phi ptr [ @kept_blocks, %entry ], [ %block, %check ]
  %block = load ptr, ptr %link
  %end = icmp eq ptr %block, null
  br i1 %end, label %done, label %check
check:
  %size = call i64 @field(ptr %block, i64 1)
  %same = icmp eq i64 %size, %bytes
  br i1 %same, label %unlink, label %next
unlink:
  %rest = load ptr, ptr %block
  store ptr %rest, ptr %link
  br label %done
done:
  ret ptr %block
}

define ptr @lucid_result_malloc(ptr %context, i64 %bytes) nounwind {
entry:
  %count = load i64, ptr @allocations
  %count1 = add i64 %count, 1
  store i64 %count1, ptr @allocations
  %found = call ptr @take_result(i64 %bytes)
  %missed = icmp eq ptr %found, null
  br i1 %missed, label %create, label %return
create:
  %limit = load i64, ptr @kept_limit
  call void @trim_results(i64 %limit)
  %large = icmp sge i64 %bytes, $MAPPED_FROM
  br i1 %large, label %map, label %allocate
map:
  %mapped = call ptr @map_block(i64 %bytes)
  br label %label_it
allocate:
  %allocated = call ptr @new_block(i64 %bytes)
  br label %label_it
label_it:
  %block = phi ptr [ %mapped, %map ], [ %allocated, %allocate ]
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %fail, label %fill
fill:
  call void @set_field(ptr %block, i64 1, i64 %bytes)
  br i1 %large, label %return, label %not_mapped
not_mapped:
  call void @set_field(ptr %block, i64 3, i64 0)
  br label %return
return:
  %used = phi ptr [ %found, %entry ], [ %block, %fill ], [ %block, %not_mapped ]
  %data = getelementptr i64, ptr %used, i64 8
  ret ptr %data
fail:
  ret ptr null
}

define void @lucid_result_free(ptr %context, ptr %data, i64 %unused) nounwind {
entry:
  %none = icmp eq ptr %data, null
  br i1 %none, label %done, label %check
check:
  %block = getelementptr i64, ptr %data, i64 -8
  %mapping = call ptr @pointer_field(ptr %block, i64 3)
  %small = icmp eq ptr %mapping, null
  br i1 %small, label %drop, label %keep
keep:
  %top = load ptr, ptr @kept_blocks
  store ptr %top, ptr %block
  store ptr %block, ptr @kept_blocks
  %now = load i64, ptr @allocations
  call void @set_field(ptr %block, i64 2, i64 %now)
  %limit = load i64, ptr @kept_limit
  call void @trim_results(i64 %limit)
  ret void
drop:
  call void @drop_block(ptr %block)
  br label %done
done:
  ret void
}

define ptr @lucid_result_calloc(ptr %context, i64 %count, i64 %size) nounwind {
entry:
  %bytes = mul i64 %count, %size
  %data = call ptr @lucid_result_malloc(ptr %context, i64 %bytes)
  %failed = icmp eq ptr %data, null
  br i1 %failed, label %done, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %data, i8 0, i64 %bytes, i1 false)
  br label %done
done:
  ret ptr %data
}

define ptr @lucid_result_realloc(ptr %context, ptr %data, i64 %bytes) nounwind {
entry:
  %new = call ptr @lucid_result_malloc(ptr %context, i64 %bytes)
  %failed = icmp eq ptr %new, null
  %none = icmp eq ptr %data, null
  %nothing = or i1 %failed, %none
  br i1 %nothing, label %done, label %move
move:
  %block = getelementptr i64, ptr %data, i64 -8
  %old = call i64 @field(ptr %block, i64 1)
  %shrinks = icmp slt i64 %bytes, %old
  %moved = select i1 %shrinks, i64 %bytes, i64 %old
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %data, i64 %moved, i1 false)
  call void @lucid_result_free(ptr %context, ptr %data, i64 %old)
  br label %done
done:
  ret ptr %new
}
