// RUN: %ember-opt %s | %ember-opt | filecheck %s
// RUN: %ember-opt --print-generic %s | filecheck %s --check-prefix=GENERIC
// RUN: %ember-opt --print-generic %s | %ember-opt | filecheck %s

// Every record of au in both forms: EmbeddingBag sum by rows and by vectors.

au.program @eb_sum_O3 target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "idx" : memref<?xindex>
  au.arg a2 "tab" : memref<?x?xf32>
  au.arg a3 "B" : index
  au.arg a4 "D" : index
  au.arg a5 "tab.pitch" : index
  au.tu  t0 = 0 to a3 step 1
  au.mem s0 on t0 = a0[t0] : index {nontemporal}
  au.next s1 on t0 = s0
  au.tu  t1 under t0 = s0 to s1 step 1
  au.mem s2 on t1 = a1[t1] : index
  au.row r0 on t1 = a2[s2 * a5] len a4 : f32
  au.push t1 ite id 2 (r0)  au.push t1 end id 1 ()
}
au.program @eb_sum_O1 target "small" {
  au.arg a0 "off" : memref<?xindex>  au.arg a1 "idx" : memref<?xindex>
  au.arg a2 "tab" : memref<?x?xf32>  au.arg a3 "B" : index  au.arg a4 "D" : index
  au.tu  t0 = 0 to a3 step 1
  au.mem s0 on t0 = a0[t0] : index
  au.alu s3 on t0 = add t0, 1
  au.mem s1 on t0 = a0[s3] : index
  au.tu  t1 under t0 = s0 to s1 step 1
  au.mem s2 on t1 = a1[t1 * 1 + -1] : index
  au.tu  t2 under t1 = 0 to a4 step 8
  au.row r0 on t2 = a2[s2 * a4 + t2] len 8 clip t2 to a4 : f32 {nontemporal}
  au.push t2 ite id 2 (t0, t2, r0)
}
au.program @fixed_bags target "small" {
  au.arg a0 "idx" : memref<?xi64>
  au.tu t0 = 0 to 64 step 4
  au.alu s0 on t0 = shl t0, 2
  au.tu t1 under t0 = s0 to s0 + 4 step 1
  au.mem s1 on t1 = a0[t1] : i64
  au.push t1 beg id 1 (t0, 5)
  au.push t1 ite id 2 (s1)
}
au.program @tables_of_requests target "small" {
  au.arg a0 "off" : memref<?xi32>
  au.arg a1 "idx" : memref<?xi32>
  au.arg a2 "tables" : memref<?xf32>
  au.arg a3 "shape" : memref<?xi32>
  au.arg a4 "B" : index {request}
  au.arg a5 "off.first" : index {request}
  au.tu t0 = 0 to a4 step 1
  au.mem s0 on t0 = a0[t0 + a5] : i32 {queue}
  au.mem s1 on t0 = a3[t0] : i32 {keep}
  au.tu t1 under t0 = 0 to 4 step 1
  au.mem s2 on t1 = a1[t1] : i32 {nontemporal, queue}
  au.row r0 on t1 = a2[s2 * s1] at s0 rows 9 len s1 : f32 {bytes, keep}
  au.row r1 on t1 = a2[s2 * 8] rows s1 len 4 : f32 {nontemporal}
  au.push t1 ite id 1 (r0, r1)
}

// CHECK: builtin.module {
// CHECK-NEXT:   au.program @eb_sum_O3 target "small" {
// CHECK-NEXT:     au.arg a0 "off" : memref<?xindex>
// CHECK-NEXT:     au.arg a1 "idx" : memref<?xindex>
// CHECK-NEXT:     au.arg a2 "tab" : memref<?x?xf32>
// CHECK-NEXT:     au.arg a3 "B" : index
// CHECK-NEXT:     au.arg a4 "D" : index
// CHECK-NEXT:     au.arg a5 "tab.pitch" : index
// CHECK-NEXT:     au.tu t0 = 0 to a3 step 1
// CHECK-NEXT:     au.mem s0 on t0 = a0[t0] : index {nontemporal}
// CHECK-NEXT:     au.next s1 on t0 = s0
// CHECK-NEXT:     au.tu t1 under t0 = s0 to s1 step 1
// CHECK-NEXT:     au.mem s2 on t1 = a1[t1] : index
// CHECK-NEXT:     au.row r0 on t1 = a2[s2 * a5] len a4 : f32
// CHECK-NEXT:     au.push t1 ite id 2 (r0)
// CHECK-NEXT:     au.push t1 end id 1 ()
// CHECK-NEXT:   }
// CHECK-NEXT:   au.program @eb_sum_O1 target "small" {
// CHECK-NEXT:     au.arg a0 "off" : memref<?xindex>
// CHECK-NEXT:     au.arg a1 "idx" : memref<?xindex>
// CHECK-NEXT:     au.arg a2 "tab" : memref<?x?xf32>
// CHECK-NEXT:     au.arg a3 "B" : index
// CHECK-NEXT:     au.arg a4 "D" : index
// CHECK-NEXT:     au.tu t0 = 0 to a3 step 1
// CHECK-NEXT:     au.mem s0 on t0 = a0[t0] : index
// CHECK-NEXT:     au.alu s3 on t0 = add t0, 1
// CHECK-NEXT:     au.mem s1 on t0 = a0[s3] : index
// CHECK-NEXT:     au.tu t1 under t0 = s0 to s1 step 1
// CHECK-NEXT:     au.mem s2 on t1 = a1[t1 * 1 + -1] : index
// CHECK-NEXT:     au.tu t2 under t1 = 0 to a4 step 8
// CHECK-NEXT:     au.row r0 on t2 = a2[s2 * a4 + t2] len 8 clip t2 to a4 : f32 {nontemporal}
// CHECK-NEXT:     au.push t2 ite id 2 (t0, t2, r0)
// CHECK-NEXT:   }
// CHECK-NEXT:   au.program @fixed_bags target "small" {
// CHECK-NEXT:     au.arg a0 "idx" : memref<?xi64>
// CHECK-NEXT:     au.tu t0 = 0 to 64 step 4
// CHECK-NEXT:     au.alu s0 on t0 = shl t0, 2
// CHECK-NEXT:     au.tu t1 under t0 = s0 to s0 + 4 step 1
// CHECK-NEXT:     au.mem s1 on t1 = a0[t1] : i64
// CHECK-NEXT:     au.push t1 beg id 1 (t0, 5)
// CHECK-NEXT:     au.push t1 ite id 2 (s1)
// CHECK-NEXT:   }
// CHECK-NEXT:   au.program @tables_of_requests target "small" {
// CHECK-NEXT:     au.arg a0 "off" : memref<?xi32>
// CHECK-NEXT:     au.arg a1 "idx" : memref<?xi32>
// CHECK-NEXT:     au.arg a2 "tables" : memref<?xf32>
// CHECK-NEXT:     au.arg a3 "shape" : memref<?xi32>
// CHECK-NEXT:     au.arg a4 "B" : index {request}
// CHECK-NEXT:     au.arg a5 "off.first" : index {request}
// CHECK-NEXT:     au.tu t0 = 0 to a4 step 1
// CHECK-NEXT:     au.mem s0 on t0 = a0[t0 + a5] : i32 {queue}
// CHECK-NEXT:     au.mem s1 on t0 = a3[t0] : i32 {keep}
// CHECK-NEXT:     au.tu t1 under t0 = 0 to 4 step 1
// CHECK-NEXT:     au.mem s2 on t1 = a1[t1] : i32 {nontemporal, queue}
// CHECK-NEXT:     au.row r0 on t1 = a2[s2 * s1] at s0 rows 9 len s1 : f32 {bytes, keep}
// CHECK-NEXT:     au.row r1 on t1 = a2[s2 * 8] rows s1 len 4 : f32 {nontemporal}
// CHECK-NEXT:     au.push t1 ite id 1 (r0, r1)
// CHECK-NEXT:   }
// CHECK-NEXT: }

// GENERIC: "au.program"() <{sym_name = "eb_sum_O3", target = "small"}> ({
// GENERIC: "au.arg"() <{argument = #au.slot<a0>, symbol = "off", type = memref<?xindex>}> : () -> ()
// GENERIC: "au.tu"() <{unit = #au.slot<t0>, lower = #au.slot<0>, upper = #au.slot<a3>, step = 1 : i64}> : () -> ()
// GENERIC: "au.mem"() <{stream = #au.slot<s0>, unit = #au.slot<t0>, base = #au.slot<a0>, index = #au.slot<t0>, element_type = index, nontemporal}> : () -> ()
// GENERIC: "au.next"() <{stream = #au.slot<s1>, unit = #au.slot<t0>, source = #au.slot<s0>}> : () -> ()
// GENERIC: "au.row"() <{row = #au.slot<r0>, unit = #au.slot<t1>, base = #au.slot<a2>, index = #au.slot<s2>, pitch = #au.slot<a5>, length = #au.slot<a4>, element_type = f32}> : () -> ()
// GENERIC: "au.push"() <{unit = #au.slot<t1>, event = #dlc<op_type ite>, id = 2 : i64, values = [#au.slot<r0>]}> : () -> ()
// GENERIC: "au.alu"() <{stream = #au.slot<s3>, unit = #au.slot<t0>, operation = #au<alu_op add>, lhs = #au.slot<t0>, rhs = #au.slot<1>}> : () -> ()
// GENERIC: "au.arg"() <{argument = #au.slot<a4>, symbol = "B", type = index, request}> : () -> ()
// GENERIC: "au.mem"() <{stream = #au.slot<s2>, unit = #au.slot<t1>, base = #au.slot<a1>, index = #au.slot<t1>, element_type = i32, nontemporal, queue}> : () -> ()
// GENERIC: "au.row"() <{row = #au.slot<r0>, unit = #au.slot<t1>, base = #au.slot<a2>, index = #au.slot<s2>, pitch = #au.slot<s1>, length = #au.slot<s1>, element_type = f32, table = #au.slot<s0>, rows = #au.slot<9>, bytes, keep}> : () -> ()
