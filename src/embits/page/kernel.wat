;; Hamming distances of many packed codes to one query, 16 bytes and four rows at a time.
;;
;; The page keeps the whole file in this module's memory, so codes are read where they lie.
;; $query points at ceil($width / 16) blocks of the query, padded with zeros, and one more block:
;; the mask of the bytes that belong to the last block. Reading goes past the codes by up to three
;; rows and 15 bytes, writing past the distances by up to three: the caller leaves that room.
;;
;; Four rows at once because their sums then fold into one vector: 4 times the speed of one row at
;; a time. No helper functions, because engines do not inline them.
;; Built by tests/page/build_kernel.mjs into site/kernel.wasm.
(module
  (import "page" "memory" (memory 1))

  ;; The distances of $rows > 0 codes of $width bytes at $codes, as 32-bit numbers at $out.
  ;; $width is at most 32,752: more could overflow the 16-bit sums.
  (func (export "distances")
    (param $codes i32) (param $rows i32) (param $width i32) (param $query i32) (param $out i32)
    (local $end i32) (local $last i32) (local $at i32) (local $mask v128) (local $q v128)
    (local $row_a i32) (local $row_b i32) (local $row_c i32) (local $row_d i32)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128)
    (local.set $last ;; the offset of the last block
      (i32.and (i32.sub (local.get $width) (i32.const 1)) (i32.const -16)))
    (local.set $mask (v128.load offset=16 (i32.add (local.get $query) (local.get $last))))
    (local.set $end (i32.add (local.get $out) (i32.shl (local.get $rows) (i32.const 2))))
    (local.set $row_a (local.get $codes))
    (loop $four_rows
      (local.set $row_b (i32.add (local.get $row_a) (local.get $width)))
      (local.set $row_c (i32.add (local.get $row_b) (local.get $width)))
      (local.set $row_d (i32.add (local.get $row_c) (local.get $width)))
      (local.set $a (v128.const i64x2 0 0))
      (local.set $b (v128.const i64x2 0 0))
      (local.set $c (v128.const i64x2 0 0))
      (local.set $d (v128.const i64x2 0 0))

      ;; All blocks but the last: the set bits of 16 bytes, as eight sums of two bytes each.
      (local.set $at (i32.const 0))
      (block $full
        (loop $block
          (br_if $full (i32.ge_u (local.get $at) (local.get $last)))
          (local.set $q (v128.load (i32.add (local.get $query) (local.get $at))))
          (local.set $a (i16x8.add (local.get $a)
            (i16x8.extadd_pairwise_i8x16_u (i8x16.popcnt (v128.xor (local.get $q)
              (v128.load (i32.add (local.get $row_a) (local.get $at))))))))
          (local.set $b (i16x8.add (local.get $b)
            (i16x8.extadd_pairwise_i8x16_u (i8x16.popcnt (v128.xor (local.get $q)
              (v128.load (i32.add (local.get $row_b) (local.get $at))))))))
          (local.set $c (i16x8.add (local.get $c)
            (i16x8.extadd_pairwise_i8x16_u (i8x16.popcnt (v128.xor (local.get $q)
              (v128.load (i32.add (local.get $row_c) (local.get $at))))))))
          (local.set $d (i16x8.add (local.get $d)
            (i16x8.extadd_pairwise_i8x16_u (i8x16.popcnt (v128.xor (local.get $q)
              (v128.load (i32.add (local.get $row_d) (local.get $at))))))))
          (local.set $at (i32.add (local.get $at) (i32.const 16)))
          (br $block)))

      ;; The last block, masked.
      (local.set $q (v128.load (i32.add (local.get $query) (local.get $last))))
      (local.set $a (i16x8.add (local.get $a)
        (i16x8.extadd_pairwise_i8x16_u (i8x16.popcnt (v128.and (local.get $mask) (v128.xor (local.get $q)
          (v128.load (i32.add (local.get $row_a) (local.get $last)))))))))
      (local.set $b (i16x8.add (local.get $b)
        (i16x8.extadd_pairwise_i8x16_u (i8x16.popcnt (v128.and (local.get $mask) (v128.xor (local.get $q)
          (v128.load (i32.add (local.get $row_b) (local.get $last)))))))))
      (local.set $c (i16x8.add (local.get $c)
        (i16x8.extadd_pairwise_i8x16_u (i8x16.popcnt (v128.and (local.get $mask) (v128.xor (local.get $q)
          (v128.load (i32.add (local.get $row_c) (local.get $last)))))))))
      (local.set $d (i16x8.add (local.get $d)
        (i16x8.extadd_pairwise_i8x16_u (i8x16.popcnt (v128.and (local.get $mask) (v128.xor (local.get $q)
          (v128.load (i32.add (local.get $row_d) (local.get $last)))))))))

      ;; Fold 4 x 8 sums to 4: halves of a and b, of c and d, quarters of both, then pairs.
      (local.set $a (i16x8.add
        (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 (local.get $a) (local.get $b))
        (i8x16.shuffle 8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31 (local.get $a) (local.get $b))))
      (local.set $c (i16x8.add
        (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 (local.get $c) (local.get $d))
        (i8x16.shuffle 8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31 (local.get $c) (local.get $d))))
      (v128.store (local.get $out) (i32x4.add
        (i32x4.extadd_pairwise_i16x8_u
          (i8x16.shuffle 0 1 2 3 8 9 10 11 16 17 18 19 24 25 26 27 (local.get $a) (local.get $c)))
        (i32x4.extadd_pairwise_i16x8_u
          (i8x16.shuffle 4 5 6 7 12 13 14 15 20 21 22 23 28 29 30 31 (local.get $a) (local.get $c)))))

      (local.set $row_a (i32.add (local.get $row_d) (local.get $width)))
      (br_if $four_rows
        (i32.lt_u
          (local.tee $out (i32.add (local.get $out) (i32.const 16)))
          (local.get $end)))))

  ;; The same where a differing bit counts 0 to 15: for float queries. A block of $query is followed
  ;; by four blocks of weights, of bits that count 8, 4, 2 and 1; padding bits count nothing.
  ;; $width is at most 2,048: more could overflow the 16-bit sums.
  (func (export "weighted")
    (param $codes i32) (param $rows i32) (param $width i32) (param $query i32) (param $out i32)
    (local $end i32) (local $at i32) (local $from i32) (local $q v128) (local $x v128) (local $sum v128)
    (local $w8 v128) (local $w4 v128) (local $w2 v128) (local $w1 v128)
    (local $row_a i32) (local $row_b i32) (local $row_c i32) (local $row_d i32)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128)
    (local.set $end (i32.add (local.get $out) (i32.shl (local.get $rows) (i32.const 2))))
    (local.set $row_a (local.get $codes))
    (loop $four_rows
      (local.set $row_b (i32.add (local.get $row_a) (local.get $width)))
      (local.set $row_c (i32.add (local.get $row_b) (local.get $width)))
      (local.set $row_d (i32.add (local.get $row_c) (local.get $width)))
      (local.set $a (v128.const i64x2 0 0))
      (local.set $b (v128.const i64x2 0 0))
      (local.set $c (v128.const i64x2 0 0))
      (local.set $d (v128.const i64x2 0 0))
      (local.set $at (i32.const 0))
      (local.set $from (local.get $query))
      (loop $block
        (local.set $q (v128.load (local.get $from)))
        (local.set $w8 (v128.load offset=16 (local.get $from)))
        (local.set $w4 (v128.load offset=32 (local.get $from)))
        (local.set $w2 (v128.load offset=48 (local.get $from)))
        (local.set $w1 (v128.load offset=64 (local.get $from)))
        (local.set $x (v128.xor (local.get $q)
          (v128.load (i32.add (local.get $row_a) (local.get $at)))))
        (local.set $sum (i8x16.popcnt (v128.and (local.get $x) (local.get $w8))))
        (local.set $sum (i8x16.add (i8x16.add (local.get $sum) (local.get $sum))
          (i8x16.popcnt (v128.and (local.get $x) (local.get $w4)))))
        (local.set $sum (i8x16.add (i8x16.add (local.get $sum) (local.get $sum))
          (i8x16.popcnt (v128.and (local.get $x) (local.get $w2)))))
        (local.set $sum (i8x16.add (i8x16.add (local.get $sum) (local.get $sum))
          (i8x16.popcnt (v128.and (local.get $x) (local.get $w1)))))
        (local.set $a (i16x8.add (local.get $a) (i16x8.extadd_pairwise_i8x16_u (local.get $sum))))
        (local.set $x (v128.xor (local.get $q)
          (v128.load (i32.add (local.get $row_b) (local.get $at)))))
        (local.set $sum (i8x16.popcnt (v128.and (local.get $x) (local.get $w8))))
        (local.set $sum (i8x16.add (i8x16.add (local.get $sum) (local.get $sum))
          (i8x16.popcnt (v128.and (local.get $x) (local.get $w4)))))
        (local.set $sum (i8x16.add (i8x16.add (local.get $sum) (local.get $sum))
          (i8x16.popcnt (v128.and (local.get $x) (local.get $w2)))))
        (local.set $sum (i8x16.add (i8x16.add (local.get $sum) (local.get $sum))
          (i8x16.popcnt (v128.and (local.get $x) (local.get $w1)))))
        (local.set $b (i16x8.add (local.get $b) (i16x8.extadd_pairwise_i8x16_u (local.get $sum))))
        (local.set $x (v128.xor (local.get $q)
          (v128.load (i32.add (local.get $row_c) (local.get $at)))))
        (local.set $sum (i8x16.popcnt (v128.and (local.get $x) (local.get $w8))))
        (local.set $sum (i8x16.add (i8x16.add (local.get $sum) (local.get $sum))
          (i8x16.popcnt (v128.and (local.get $x) (local.get $w4)))))
        (local.set $sum (i8x16.add (i8x16.add (local.get $sum) (local.get $sum))
          (i8x16.popcnt (v128.and (local.get $x) (local.get $w2)))))
        (local.set $sum (i8x16.add (i8x16.add (local.get $sum) (local.get $sum))
          (i8x16.popcnt (v128.and (local.get $x) (local.get $w1)))))
        (local.set $c (i16x8.add (local.get $c) (i16x8.extadd_pairwise_i8x16_u (local.get $sum))))
        (local.set $x (v128.xor (local.get $q)
          (v128.load (i32.add (local.get $row_d) (local.get $at)))))
        (local.set $sum (i8x16.popcnt (v128.and (local.get $x) (local.get $w8))))
        (local.set $sum (i8x16.add (i8x16.add (local.get $sum) (local.get $sum))
          (i8x16.popcnt (v128.and (local.get $x) (local.get $w4)))))
        (local.set $sum (i8x16.add (i8x16.add (local.get $sum) (local.get $sum))
          (i8x16.popcnt (v128.and (local.get $x) (local.get $w2)))))
        (local.set $sum (i8x16.add (i8x16.add (local.get $sum) (local.get $sum))
          (i8x16.popcnt (v128.and (local.get $x) (local.get $w1)))))
        (local.set $d (i16x8.add (local.get $d) (i16x8.extadd_pairwise_i8x16_u (local.get $sum))))
        (local.set $from (i32.add (local.get $from) (i32.const 80)))
        (br_if $block (i32.lt_u
          (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $width))))

      ;; Fold 4 x 8 sums to 4: halves of a and b, of c and d, quarters of both, then pairs.
      (local.set $a (i16x8.add
        (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 (local.get $a) (local.get $b))
        (i8x16.shuffle 8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31 (local.get $a) (local.get $b))))
      (local.set $c (i16x8.add
        (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 (local.get $c) (local.get $d))
        (i8x16.shuffle 8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31 (local.get $c) (local.get $d))))
      (v128.store (local.get $out) (i32x4.add
        (i32x4.extadd_pairwise_i16x8_u
          (i8x16.shuffle 0 1 2 3 8 9 10 11 16 17 18 19 24 25 26 27 (local.get $a) (local.get $c)))
        (i32x4.extadd_pairwise_i16x8_u
          (i8x16.shuffle 4 5 6 7 12 13 14 15 20 21 22 23 28 29 30 31 (local.get $a) (local.get $c)))))

      (local.set $row_a (i32.add (local.get $row_d) (local.get $width)))
      (br_if $four_rows
        (i32.lt_u
          (local.tee $out (i32.add (local.get $out) (i32.const 16)))
          (local.get $end))))))
