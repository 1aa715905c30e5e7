; Sorts rows: writes the indices that sort each row and its elements in order, or the first k of them.
;
; An element is a pair (key, index) in one integer of type $PAIR: keys are unsigned integers in the
; order of the numbers, so pairs compare as integers, and the sort is stable. Short rows use insertion
; sort, others radix sort: for each digit of the key, from the lowest, pairs are counted and
; distributed. Digits that all keys share are skipped.
;
; args: 0 x  1 indices  2 values or null  3 workspace  4 elements of a row n  5 elements wanted k
;       6, 7, 8 strides along a row of x, indices, values  9 mask that reverses the order of keys
;       10 wanted elements in order of their indices  11 bits of a digit  12 rows of a chunk
;       13 bytes of workspace for a chunk  14.. for each other axis: size, strides in x, indices, values
; Workspace of a chunk: n pairs, n pairs, counts of all digits.

define internal i64 @word(ptr %args, i64 %i) nounwind alwaysinline {
  %p = getelementptr i64, ptr %args, i64 %i
  %v = load i64, ptr %p
  ret i64 %v
}

define internal ptr @word_pointer(ptr %args, i64 %i) nounwind alwaysinline {
  %p = getelementptr i64, ptr %args, i64 %i
  %v = load ptr, ptr %p
  ret ptr %v
}

define internal $KEY @narrow(i64 %x) nounwind alwaysinline {
$NARROW
}

define internal i64 @widen($KEY %x) nounwind alwaysinline {
$WIDEN
}

define internal $KEY @key_of($ELEMENT %x) nounwind alwaysinline {
$KEY_OF
}

define internal $KEY @key($PAIR %pair) nounwind alwaysinline {
  %high = lshr $PAIR %pair, $WIDTH
  %key = trunc $PAIR %high to $KEY
  ret $KEY %key
}

define internal $PAIR @paired($KEY %key, i64 %index) nounwind alwaysinline {
  %wide = zext $KEY %key to $PAIR
  %high = shl $PAIR %wide, $WIDTH
  %short = call $KEY @narrow(i64 %index)
  %low = zext $KEY %short to $PAIR
  %pair = or $PAIR %high, %low
  ret $PAIR %pair
}

define internal void @insertion(ptr %a, i64 %n) nounwind {
entry:
  br label %next
next:
  %i = phi i64 [ 1, %entry ], [ %i1, %placed ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %take, label %done
take:
  %p = getelementptr $PAIR, ptr %a, i64 %i
  %pair = load $PAIR, ptr %p
  br label %compare
compare:
  %j = phi i64 [ %i, %take ], [ %before, %shift ]
  %before = sub i64 %j, 1
  %first = icmp eq i64 %j, 0
  br i1 %first, label %placed, label %look
look:
  %q = getelementptr $PAIR, ptr %a, i64 %before
  %other = load $PAIR, ptr %q
  %larger = icmp ugt $PAIR %other, %pair
  br i1 %larger, label %shift, label %placed
shift:
  %r = getelementptr $PAIR, ptr %a, i64 %j
  store $PAIR %other, ptr %r
  br label %compare
placed:
  %s = getelementptr $PAIR, ptr %a, i64 %j
  store $PAIR %pair, ptr %s
  %i1 = add i64 %i, 1
  br label %next
done:
  ret void
}

; Count the values of every digit: counts[digit * 2^bits + value].
define internal void @count(ptr %a, ptr %counts, i64 %n, i64 %bits) nounwind {
entry:
  %values = shl i64 1, %bits
  %ones = sub i64 %values, 1
  %mask = call $KEY @narrow(i64 %ones)
  %step = call $KEY @narrow(i64 %bits)
  %padded = add i64 %bits, $WIDTH
  %rounded = sub i64 %padded, 1
  %digits = sdiv i64 %rounded, %bits
  %all = mul i64 %digits, %values
  %size = mul i64 %all, 4
  call void @llvm.memset.p0.i64(ptr %counts, i8 0, i64 %size, i1 false)
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %counted ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %take, label %done
take:
  %p = getelementptr $PAIR, ptr %a, i64 %i
  %pair = load $PAIR, ptr %p
  %key = call $KEY @key($PAIR %pair)
  br label %digit
digit:
  %d = phi i64 [ 0, %take ], [ %d1, %digit ]
  %rest = phi $KEY [ %key, %take ], [ %rest1, %digit ]
  %low = and $KEY %rest, %mask
  %value = call i64 @widen($KEY %low)
  %base = shl i64 %d, %bits
  %at = add i64 %base, %value
  %q = getelementptr i32, ptr %counts, i64 %at
  %old = load i32, ptr %q
  %new = add i32 %old, 1
  store i32 %new, ptr %q
  %rest1 = lshr $KEY %rest, %step
  %d1 = add i64 %d, 1
  %left = icmp slt i64 %d1, %digits
  br i1 %left, label %digit, label %counted
counted:
  %i1 = add i64 %i, 1
  br label %next
done:
  ret void
}

; Distribute pairs from a to b by one digit, whose counts become start indices.
define internal void @distribute(ptr noalias %a, ptr noalias %b, ptr noalias %counts, i64 %n,
                                 i64 %bits, i64 %shift) nounwind {
entry:
  %values = shl i64 1, %bits
  %ones = sub i64 %values, 1
  %mask = call $KEY @narrow(i64 %ones)
  %by = call $KEY @narrow(i64 %shift)
  br label %sum
sum:
  %v = phi i64 [ 0, %entry ], [ %v1, %sum ]
  %total = phi i32 [ 0, %entry ], [ %total1, %sum ]
  %c = getelementptr i32, ptr %counts, i64 %v
  %count = load i32, ptr %c
  store i32 %total, ptr %c
  %total1 = add i32 %total, %count
  %v1 = add i64 %v, 1
  %summing = icmp slt i64 %v1, %values
  br i1 %summing, label %sum, label %next
next:
  %i = phi i64 [ 0, %sum ], [ %i1, %next ]
  %p = getelementptr $PAIR, ptr %a, i64 %i
  %pair = load $PAIR, ptr %p
  %key = call $KEY @key($PAIR %pair)
  %down = lshr $KEY %key, %by
  %low = and $KEY %down, %mask
  %value = call i64 @widen($KEY %low)
  %q = getelementptr i32, ptr %counts, i64 %value
  %place = load i32, ptr %q
  %place1 = add i32 %place, 1
  store i32 %place1, ptr %q
  %wide = zext i32 %place to i64
  %r = getelementptr $PAIR, ptr %b, i64 %wide
  store $PAIR %pair, ptr %r
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %n
  br i1 %more, label %next, label %done
done:
  ret void
}

; Sort n pairs at a, with b as a second buffer; return the buffer that holds the result.
define internal ptr @sorted(ptr %a, ptr %b, ptr %counts, i64 %n, i64 %bits) nounwind {
entry:
  %short = icmp sle i64 %n, $SHORT
  br i1 %short, label %insert, label %radix
insert:
  call void @insertion(ptr %a, i64 %n)
  ret ptr %a
radix:
  call void @count(ptr %a, ptr %counts, i64 %n, i64 %bits)
  %ones = shl i64 -1, %bits
  %mask = xor i64 %ones, -1
  br label %next
next:
  %from = phi ptr [ %a, %radix ], [ %from1, %skip ]
  %to = phi ptr [ %b, %radix ], [ %to1, %skip ]
  %table = phi ptr [ %counts, %radix ], [ %table1, %skip ]
  %shift = phi i64 [ 0, %radix ], [ %shift1, %skip ]
  %more = icmp slt i64 %shift, $WIDTH
  br i1 %more, label %look, label %done
look:
  %pair = load $PAIR, ptr %from
  %key = call $KEY @key($PAIR %pair)
  %wide = call i64 @widen($KEY %key)
  %down = lshr i64 %wide, %shift
  %value = and i64 %down, %mask
  %c = getelementptr i32, ptr %table, i64 %value
  %count = load i32, ptr %c
  %equal = zext i32 %count to i64
  %shared = icmp eq i64 %equal, %n
  br i1 %shared, label %skip, label %move
move:
  call void @distribute(ptr %from, ptr %to, ptr %table, i64 %n, i64 %bits, i64 %shift)
  br label %skip
skip:
  %from1 = phi ptr [ %from, %look ], [ %to, %move ]
  %to1 = phi ptr [ %to, %look ], [ %from, %move ]
  %values = shl i64 1, %bits
  %table1 = getelementptr i32, ptr %table, i64 %values
  %shift1 = add i64 %shift, %bits
  br label %next
done:
  ret ptr %from
}

; Replace the keys of the first k pairs by their indices.
define internal void @by_index(ptr %a, i64 %k) nounwind {
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %run ]
  %more = icmp slt i64 %i, %k
  br i1 %more, label %run, label %done
run:
  %p = getelementptr $PAIR, ptr %a, i64 %i
  %pair = load $PAIR, ptr %p
  %index = trunc $PAIR %pair to $KEY
  %wide = call i64 @widen($KEY %index)
  %new = call $PAIR @paired($KEY %index, i64 %wide)
  store $PAIR %new, ptr %p
  %i1 = add i64 %i, 1
  br label %next
done:
  ret void
}

define internal void @sort_row(ptr %args, ptr %x, ptr %indices, ptr %values, ptr %space) nounwind {
entry:
  %n = call i64 @word(ptr %args, i64 4)
  %k = call i64 @word(ptr %args, i64 5)
  %step_x = call i64 @word(ptr %args, i64 6)
  %step_i = call i64 @word(ptr %args, i64 7)
  %step_v = call i64 @word(ptr %args, i64 8)
  %turn = call i64 @word(ptr %args, i64 9)
  %mask = call $KEY @narrow(i64 %turn)
  %again = call i64 @word(ptr %args, i64 10)
  %bits = call i64 @word(ptr %args, i64 11)
  %b = getelementptr $PAIR, ptr %space, i64 %n
  %counts = getelementptr $PAIR, ptr %b, i64 %n
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %read ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %read, label %sort
read:
  %o = mul i64 %i, %step_x
  %p = getelementptr $ELEMENT, ptr %x, i64 %o
  %element = load $ELEMENT, ptr %p
  %plain = call $KEY @key_of($ELEMENT %element)
  %key = xor $KEY %plain, %mask
  %pair = call $PAIR @paired($KEY %key, i64 %i)
  %q = getelementptr $PAIR, ptr %space, i64 %i
  store $PAIR %pair, ptr %q
  %i1 = add i64 %i, 1
  br label %next
sort:
  %first = call ptr @sorted(ptr %space, ptr %b, ptr %counts, i64 %n, i64 %bits)
  %unordered = icmp ne i64 %again, 0
  br i1 %unordered, label %reorder, label %ordered
reorder:
  %swapped = icmp eq ptr %first, %b
  %other = select i1 %swapped, ptr %space, ptr %b
  call void @by_index(ptr %first, i64 %k)
  %second = call ptr @sorted(ptr %first, ptr %other, ptr %counts, i64 %k, i64 %bits)
  br label %ordered
ordered:
  %result = phi ptr [ %first, %sort ], [ %second, %reorder ]
  %wanted = icmp ne ptr %values, null
  br label %give
give:
  %j = phi i64 [ 0, %ordered ], [ %j1, %given ]
  %giving = icmp slt i64 %j, %k
  br i1 %giving, label %write, label %done
write:
  %r = getelementptr $PAIR, ptr %result, i64 %j
  %found = load $PAIR, ptr %r
  %index = trunc $PAIR %found to $KEY
  %place = call i64 @widen($KEY %index)
  %oi = mul i64 %j, %step_i
  %pi = getelementptr i64, ptr %indices, i64 %oi
  store i64 %place, ptr %pi
  br i1 %wanted, label %value, label %given
value:
  %ox = mul i64 %place, %step_x
  %px = getelementptr $ELEMENT, ptr %x, i64 %ox
  %taken = load $ELEMENT, ptr %px
  %ov = mul i64 %j, %step_v
  %pv = getelementptr $ELEMENT, ptr %values, i64 %ov
  store $ELEMENT %taken, ptr %pv
  br label %given
given:
  %j1 = add i64 %j, 1
  br label %give
done:
  ret void
}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define void @$NAME(ptr %args, i64 %lo, i64 %hi) nounwind {
entry:
  %x = call ptr @word_pointer(ptr %args, i64 0)
  %indices = call ptr @word_pointer(ptr %args, i64 1)
  %values = call ptr @word_pointer(ptr %args, i64 2)
  %workspace = call ptr @word_pointer(ptr %args, i64 3)
  %grain = call i64 @word(ptr %args, i64 12)
  %bytes = call i64 @word(ptr %args, i64 13)
  %chunk = sdiv i64 %lo, %grain
  %offset = mul i64 %chunk, %bytes
  %space = getelementptr i8, ptr %workspace, i64 %offset
  %none = icmp eq ptr %values, null
  br label %next
next:
  %row = phi i64 [ %lo, %entry ], [ %row1, %run ]
  %more = icmp slt i64 %row, %hi
  br i1 %more, label %run, label %done
run:
  %rest0 = add i64 %row, 0
$OFFSETS
  %xr = getelementptr $ELEMENT, ptr %x, i64 %ox$AXES
  %ir = getelementptr i64, ptr %indices, i64 %oi$AXES
  %some = getelementptr $ELEMENT, ptr %values, i64 %ov$AXES
  %vr = select i1 %none, ptr null, ptr %some
  call void @sort_row(ptr %args, ptr %xr, ptr %ir, ptr %vr, ptr %space)
  %row1 = add i64 %row, 1
  br label %next
done:
  ret void
}
