; GEMM as a kernel over tiles of a batch of row-major matrices. BLAS is column-major, so C = A B is
; computed as C' = B' A'. The matrix sizes are 64-bit words, the function is BLAS's own.
;
; args: 0 A  1 B  2 C  3 function  4 rows m  5 columns n  6 inner size k  7 lda  8 ldb  9 ldc
;       10 A is transposed  11 B is transposed  12 alpha  13 beta (bits of the matrix type)
;       14, 15, 16 bytes from one matrix of the batch to the next
;       17, 18 rows and columns of a tile  19, 20 tiles down and across a matrix
;       21 length of the pieces into which the inner size is split  22 one
;       23 matrices of an inner batch  24, 25, 26 bytes from one inner batch to the next
; The extent counts tiles: across, then down, then the batch.

@letters = internal constant [2 x i8] c"NT"

define internal ptr @advance(ptr %p, i64 %count, i64 %size) nounwind alwaysinline {
  %bytes = mul i64 %count, %size
  %q = getelementptr i8, ptr %p, i64 %bytes
  ret ptr %q
}

; A matrix of nested batches: words `at`, at + 1, ... are the size of an inner batch and the bytes from
; one inner batch to the next, for each operand.
define internal ptr @matrix_of(ptr %args, ptr %p, i64 %matrix, i64 %stride, i64 %at, i64 %operand) nounwind alwaysinline {
  %inner = call i64 @word(ptr %args, i64 %at)
  %next = add i64 %at, 1
  %place = add i64 %next, %operand
  %apart = call i64 @word(ptr %args, i64 %place)
  %batch = udiv i64 %matrix, %inner
  %within = urem i64 %matrix, %inner
  %q = call ptr @advance(ptr %p, i64 %within, i64 %stride)
  %r = call ptr @advance(ptr %q, i64 %batch, i64 %apart)
  ret ptr %r
}

define internal void @gemm_tiles(ptr %args, i64 %lo, i64 %hi, i64 %size) nounwind alwaysinline {
entry:
  %A = call ptr @word_pointer(ptr %args, i64 0)
  %B = call ptr @word_pointer(ptr %args, i64 1)
  %C = call ptr @word_pointer(ptr %args, i64 2)
  %gemm = call ptr @word_pointer(ptr %args, i64 3)
  %m = call i64 @word(ptr %args, i64 4)
  %n = call i64 @word(ptr %args, i64 5)
  %lda = call i64 @word(ptr %args, i64 7)
  %ldb = call i64 @word(ptr %args, i64 8)
  %ldc = call i64 @word(ptr %args, i64 9)
  %transposed_a = call i64 @word(ptr %args, i64 10)
  %transposed_b = call i64 @word(ptr %args, i64 11)
  %stride_a = call i64 @word(ptr %args, i64 14)
  %stride_b = call i64 @word(ptr %args, i64 15)
  %stride_c = call i64 @word(ptr %args, i64 16)
  %tile_rows = call i64 @word(ptr %args, i64 17)
  %tile_columns = call i64 @word(ptr %args, i64 18)
  %down = call i64 @word(ptr %args, i64 19)
  %across = call i64 @word(ptr %args, i64 20)
  %tiles = mul i64 %down, %across
  %k = call i64 @word(ptr %args, i64 6)
  %piece = call i64 @word(ptr %args, i64 21)
  %one_at = getelementptr i64, ptr %args, i64 22
  %lda_at = getelementptr i64, ptr %args, i64 7
  %ldb_at = getelementptr i64, ptr %args, i64 8
  %ldc_at = getelementptr i64, ptr %args, i64 9
  %alpha_at = getelementptr i64, ptr %args, i64 12
  %beta_at = getelementptr i64, ptr %args, i64 13
  %letter_a = getelementptr i8, ptr @letters, i64 %transposed_a
  %letter_b = getelementptr i8, ptr @letters, i64 %transposed_b
  %rows_at = alloca i64
  %columns_at = alloca i64
  %inner_at = alloca i64
  %is_transposed_a = icmp ne i64 %transposed_a, 0
  %is_transposed_b = icmp ne i64 %transposed_b, 0
  %row_a = select i1 %is_transposed_a, i64 1, i64 %lda
  %column_b = select i1 %is_transposed_b, i64 %ldb, i64 1
  %inner_a = select i1 %is_transposed_a, i64 %lda, i64 1
  %inner_b = select i1 %is_transposed_b, i64 1, i64 %ldb
  br label %next
next:
  %unit = phi i64 [ %lo, %entry ], [ %unit1, %advance_unit ]
  %more = icmp slt i64 %unit, %hi
  br i1 %more, label %multiply, label %done
multiply:
  %matrix = sdiv i64 %unit, %tiles
  %tile = srem i64 %unit, %tiles
  %tile_i = sdiv i64 %tile, %across
  %tile_j = srem i64 %tile, %across
  %i = mul i64 %tile_i, %tile_rows
  %j = mul i64 %tile_j, %tile_columns
  %below = sub i64 %m, %i
  %right = sub i64 %n, %j
  %rows = call i64 @llvm.smin.i64(i64 %below, i64 %tile_rows)
  %columns = call i64 @llvm.smin.i64(i64 %right, i64 %tile_columns)
  store i64 %rows, ptr %rows_at
  store i64 %columns, ptr %columns_at
  %a0 = call ptr @matrix_of(ptr %args, ptr %A, i64 %matrix, i64 %stride_a, i64 23, i64 0)
  %b0 = call ptr @matrix_of(ptr %args, ptr %B, i64 %matrix, i64 %stride_b, i64 23, i64 1)
  %c0 = call ptr @matrix_of(ptr %args, ptr %C, i64 %matrix, i64 %stride_c, i64 23, i64 2)
  %skip_a = mul i64 %i, %row_a
  %skip_b = mul i64 %j, %column_b
  %row_c = mul i64 %i, %ldc
  %skip_c = add i64 %row_c, %j
  %a = call ptr @advance(ptr %a0, i64 %skip_a, i64 %size)
  %b = call ptr @advance(ptr %b0, i64 %skip_b, i64 %size)
  %c = call ptr @advance(ptr %c0, i64 %skip_c, i64 %size)
  br label %accumulate
accumulate:
  %from = phi i64 [ 0, %multiply ], [ %to, %accumulate ]
  %inner_left = sub i64 %k, %from
  %inner = call i64 @llvm.smin.i64(i64 %inner_left, i64 %piece)
  store i64 %inner, ptr %inner_at
  %is_first = icmp eq i64 %from, 0
  %factor_at = select i1 %is_first, ptr %beta_at, ptr %one_at
  %along_a = mul i64 %from, %inner_a
  %along_b = mul i64 %from, %inner_b
  %a_piece = call ptr @advance(ptr %a, i64 %along_a, i64 %size)
  %b_piece = call ptr @advance(ptr %b, i64 %along_b, i64 %size)
  call void %gemm(ptr %letter_b, ptr %letter_a, ptr %columns_at, ptr %rows_at, ptr %inner_at,
                  ptr %alpha_at, ptr %b_piece, ptr %ldb_at, ptr %a_piece, ptr %lda_at,
                  ptr %factor_at, ptr %c, ptr %ldc_at)
  %to = add i64 %from, %piece
  %unfinished = icmp slt i64 %to, %k
  br i1 %unfinished, label %accumulate, label %advance_unit
advance_unit:
  %unit1 = add i64 %unit, 1
  br label %next
done:
  ret void
}

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

declare i64 @llvm.smin.i64(i64, i64)

define void @gemm_f4(ptr %args, i64 %lo, i64 %hi) nounwind {
  call void @gemm_tiles(ptr %args, i64 %lo, i64 %hi, i64 4)
  ret void
}

define void @gemm_f8(ptr %args, i64 %lo, i64 %hi) nounwind {
  call void @gemm_tiles(ptr %args, i64 %lo, i64 %hi, i64 8)
  ret void
}

; GEMV over tiles of the result: y = alpha M x + beta y, or with M' in place of M, for row-major M.
;
; args: 0 M  1 x  2 y  3 function  4 rows of M  5 columns of M  6 distance between its rows
;       7 M is transposed  8 alpha  9 beta  10 step of x  11 step of y (in elements)
;       12, 13, 14 bytes from one of the batch to the next  15 results of a tile
;       16 tiles of a result  17 matrices of an inner batch  18, 19, 20 bytes from one to the next

define internal void @gemv_tiles(ptr %args, i64 %lo, i64 %hi, i64 %size) nounwind alwaysinline {
entry:
  %M = call ptr @word_pointer(ptr %args, i64 0)
  %X = call ptr @word_pointer(ptr %args, i64 1)
  %Y = call ptr @word_pointer(ptr %args, i64 2)
  %gemv = call ptr @word_pointer(ptr %args, i64 3)
  %rows = call i64 @word(ptr %args, i64 4)
  %columns = call i64 @word(ptr %args, i64 5)
  %ld = call i64 @word(ptr %args, i64 6)
  %transposed = call i64 @word(ptr %args, i64 7)
  %step_y = call i64 @word(ptr %args, i64 11)
  %stride_m = call i64 @word(ptr %args, i64 12)
  %stride_x = call i64 @word(ptr %args, i64 13)
  %stride_y = call i64 @word(ptr %args, i64 14)
  %tile = call i64 @word(ptr %args, i64 15)
  %tiles = call i64 @word(ptr %args, i64 16)
  %ld_at = getelementptr i64, ptr %args, i64 6
  %alpha_at = getelementptr i64, ptr %args, i64 8
  %beta_at = getelementptr i64, ptr %args, i64 9
  %step_x_at = getelementptr i64, ptr %args, i64 10
  %step_y_at = getelementptr i64, ptr %args, i64 11
  %rows_at = alloca i64
  %columns_at = alloca i64
  %is_transposed = icmp ne i64 %transposed, 0
  %length = select i1 %is_transposed, i64 %columns, i64 %rows
  %along = select i1 %is_transposed, i64 1, i64 %ld
  %other = sub i64 1, %transposed
  %letter = getelementptr i8, ptr @letters, i64 %other
  store i64 %rows, ptr %rows_at
  store i64 %columns, ptr %columns_at
  %part_at = select i1 %is_transposed, ptr %columns_at, ptr %rows_at
  br label %next
next:
  %unit = phi i64 [ %lo, %entry ], [ %unit1, %multiply ]
  %more = icmp slt i64 %unit, %hi
  br i1 %more, label %multiply, label %done
multiply:
  %matrix = sdiv i64 %unit, %tiles
  %index = srem i64 %unit, %tiles
  %first = mul i64 %index, %tile
  %left = sub i64 %length, %first
  %part = call i64 @llvm.smin.i64(i64 %left, i64 %tile)
  store i64 %part, ptr %part_at
  %m0 = call ptr @matrix_of(ptr %args, ptr %M, i64 %matrix, i64 %stride_m, i64 17, i64 0)
  %x = call ptr @matrix_of(ptr %args, ptr %X, i64 %matrix, i64 %stride_x, i64 17, i64 1)
  %y0 = call ptr @matrix_of(ptr %args, ptr %Y, i64 %matrix, i64 %stride_y, i64 17, i64 2)
  %skip_m = mul i64 %first, %along
  %skip_y = mul i64 %first, %step_y
  %m = call ptr @advance(ptr %m0, i64 %skip_m, i64 %size)
  %y = call ptr @advance(ptr %y0, i64 %skip_y, i64 %size)
  call void %gemv(ptr %letter, ptr %columns_at, ptr %rows_at, ptr %alpha_at, ptr %m, ptr %ld_at,
                  ptr %x, ptr %step_x_at, ptr %beta_at, ptr %y, ptr %step_y_at)
  %unit1 = add i64 %unit, 1
  br label %next
done:
  ret void
}

define void @gemv_f4(ptr %args, i64 %lo, i64 %hi) nounwind {
  call void @gemv_tiles(ptr %args, i64 %lo, i64 %hi, i64 4)
  ret void
}

define void @gemv_f8(ptr %args, i64 %lo, i64 %hi) nounwind {
  call void @gemv_tiles(ptr %args, i64 %lo, i64 %hi, i64 8)
  ret void
}

; A product and the kernel that reads its result, alternating over blocks of rows.
;
; args: 0 function of the product  1 kernel  2 tiles of a block  3 tiles
;       4 units of the kernel's extent in a block  5 its extent  6 words of the product's arguments
;       7.. arguments of the product, then of the kernel
; The extent counts blocks.

define void @gemm_epilogue(ptr %args, i64 %lo, i64 %hi) nounwind {
entry:
  %product = call ptr @word_pointer(ptr %args, i64 0)
  %kernel = call ptr @word_pointer(ptr %args, i64 1)
  %tiles = call i64 @word(ptr %args, i64 2)
  %all_tiles = call i64 @word(ptr %args, i64 3)
  %units = call i64 @word(ptr %args, i64 4)
  %all_units = call i64 @word(ptr %args, i64 5)
  %words = call i64 @word(ptr %args, i64 6)
  %product_args = getelementptr i64, ptr %args, i64 7
  %kernel_args = getelementptr i64, ptr %product_args, i64 %words
  br label %next
next:
  %block = phi i64 [ %lo, %entry ], [ %after, %run ]
  %more = icmp slt i64 %block, %hi
  br i1 %more, label %run, label %done
run:
  %after = add i64 %block, 1
  %tile = mul i64 %block, %tiles
  %tile_end = mul i64 %after, %tiles
  %last_tile = call i64 @llvm.smin.i64(i64 %tile_end, i64 %all_tiles)
  call void %product(ptr %product_args, i64 %tile, i64 %last_tile)
  %unit = mul i64 %block, %units
  %unit_end = mul i64 %after, %units
  %last_unit = call i64 @llvm.smin.i64(i64 %unit_end, i64 %all_units)
  call void %kernel(ptr %kernel_args, i64 %unit, i64 %last_unit)
  br label %next
done:
  ret void
}
