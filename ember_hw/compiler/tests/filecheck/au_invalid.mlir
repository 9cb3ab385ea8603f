// RUN: %ember-opt --split-input-file --verify-diagnostics %s | filecheck %s

// Every message of the verifiers and the parsers of au.

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.arg a2 "B" : index
}
// CHECK: error: 'au.program' ({{.*}}): au.arg a2: name must be defined once, not a2 again

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.arg t0 "B" : index
}
// CHECK: error: {{.*}}: argument must be aN, not t0

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.arg a3 "B" : f32
}
// CHECK: error: 'au.arg' ({{.*}}): type of an argument must be a memref or index, not f32

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.mem s0 on t0 = a0[x0] : index
}
// CHECK: error: {{.*}}: slot must be tN, sN, rN, aN or an integer, not x0

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.mem s0 on t0 = a0[] : index
}
// CHECK: error: {{.*}}: slot must be tN, sN, rN, aN or an integer, not absent

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.mem s0 on t0 = a0[t0] : f64
}
// CHECK: error: 'au.mem' ({{.*}}): element type must be one of i8, i16, i32, i64, index, f16, bf16, f32, not f64

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.mem s0 on t0 = a0[t0] : f32
}
// CHECK: error: 'au.program' ({{.*}}): au.mem s0 on t0: element type must be that of a0, index, not f32

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.mem s0 on t0 = a0[t0] : index {volatile}
}
// CHECK: error: {{.*}}: attribute of the record must be nontemporal or keep or queue, not volatile

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.mem s0 on t0 = a2[t0] : index
}
// CHECK: error: 'au.program' ({{.*}}): au.mem s0 on t0: base a2 must be a memref argument, not index

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.mem s0 on t0 = a7[t0] : index
}
// CHECK: error: 'au.program' ({{.*}}): au.mem s0 on t0: base must be an argument defined above, not a7

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.mem s0 on t0 = a0[a1] : index
}
// CHECK: error: 'au.program' ({{.*}}): au.mem s0 on t0: argument a1 used as a value must be of type index, not memref<?x?xf32>

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.mem s0 on t0 = a0[a9] : index
}
// CHECK: error: 'au.program' ({{.*}}): au.mem s0 on t0: slot must be defined above, not a9

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.mem s0 on t0 = a0[s0] : index
}
// CHECK: error: 'au.program' ({{.*}}): au.mem s0 on t0: slot must be defined above, not s0

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.mem s0 on t0 = a0[t1] : index
}
// CHECK: error: 'au.program' ({{.*}}): au.mem s0 on t0: slot must be defined above, not t1

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.mem s0 on t1 = a0[t0] : index
}
// CHECK: error: 'au.program' ({{.*}}): au.mem s0 on t1: unit must be defined above, not t1

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.mem s0 on t0 = a0[t0] : index
  au.alu s0 on t0 = add t0, 1
}
// CHECK: error: 'au.program' ({{.*}}): au.alu s0 on t0: name must be defined once, not s0 again

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  "au.mem"() <{stream = #au.slot<t0>, unit = #au.slot<t0>, base = #au.slot<a0>, index = #au.slot<t0>, element_type = index}> : () -> ()
}
// CHECK: error: 'au.mem' ({{.*}}): name of a stream must be sN, not t0

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  "au.mem"() <{stream = #au.slot<s0>, unit = #au.slot<t0>, base = #au.slot<3>, index = #au.slot<t0>, element_type = index}> : () -> ()
}
// CHECK: error: 'au.mem' ({{.*}}): base of an address must be aN, not 3

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.mem s0 on t0 = a0[r0] : index
}
// CHECK: error: 'au.mem' ({{.*}}): index of an address must be tN, sN, aN or an integer, not r0

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.tu t1 under t0 = 0 to 4 step 0
}
// CHECK: error: 'au.tu' ({{.*}}): step must be at least 1, not 0

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.tu t1 under t0 = 0 to a2 + 4 step 1
}
// CHECK: error: 'au.tu' ({{.*}}): upper bound must be the lower bound 0 when an integer is added, not a2

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.tu t1 under t0 = r0 to 4 step 1
}
// CHECK: error: 'au.tu' ({{.*}}): lower bound must be tN, sN, aN or an integer, not r0

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.tu t1 under t0 = 0 to r1 step 1
}
// CHECK: error: 'au.tu' ({{.*}}): upper bound must be tN, sN, aN or an integer, not r1

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.tu t0 under t0 = 0 to 4 step 1
}
// CHECK: error: 'au.program' ({{.*}}): au.tu t0: name must be defined once, not t0 again

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.tu t1 = 0 to 4 step 1
}
// CHECK: error: 'au.program' ({{.*}}): au.tu t1: unit must be under another, as t0 is the root, not a root

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.tu t1 under t3 = 0 to 4 step 1
}
// CHECK: error: 'au.program' ({{.*}}): au.tu t1: unit must be defined above, not t3

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.tu t1 under t0 = 0 to 4 step 1
  au.tu t2 under t0 = 0 to 4 step 1
}
// CHECK: error: 'au.program' ({{.*}}): au.tu t2: parent must be a unit without another child, not t0

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.tu t1 under t0 = 0 to t1 step 1
}
// CHECK: error: 'au.program' ({{.*}}): au.tu t1: slot must be defined above, not t1

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.mem s0 on t0 = a0[t0] : index
  au.tu t1 under t0 = 0 to 4 step 1
  au.mem s1 on t1 = a0[t1] : index
  au.tu t2 under t1 = s0 to s1 step 1
  au.alu s2 on t0 = add s0, s1
}
// CHECK: error: 'au.program' ({{.*}}): au.alu s2 on t0: slot must be of its unit or an ancestor, not s1 of t1

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.next s1 on t0 = s0
}
// CHECK: error: 'au.program' ({{.*}}): au.next s1 on t0: source must be an au.mem of t0 above, not s0

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.mem s0 on t0 = a0[t0] : index
  au.next s1 on t0 = s0
  au.next s2 on t0 = s0
}
// CHECK: error: 'au.program' ({{.*}}): au.next s2 on t0: number of au.next of a unit must be at most 1, not 2

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.mem s0 on t0 = a0[t0] : index
  au.next s1 on t0 = t0
}
// CHECK: error: {{.*}}: stream must be sN, not t0

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.alu s0 on t0 = div t0, 2
}
// CHECK: error: {{.*}}: Expected `add`, `sub`, `mul`, or `shl`.

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.alu s0 on t0 = add r0, 2
}
// CHECK: error: 'au.alu' ({{.*}}): left operand must be tN, sN, aN or an integer, not r0

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.alu s0 on t0 = add 2, r0
}
// CHECK: error: 'au.alu' ({{.*}}): right operand must be tN, sN, aN or an integer, not r0

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.row r0 on t0 = a1[t0] len a2 : f32
}
// CHECK: error: {{.*}}: address of a row must be aN[slot * pitch], not without *

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.row r0 on t0 = a1[t0 * a2] len r1 : f32
}
// CHECK: error: 'au.row' ({{.*}}): length of a row must be tN, sN, aN or an integer, not r1

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.row r0 on t0 = a1[t0 * a2] len a2 : f16
}
// CHECK: error: 'au.program' ({{.*}}): au.row r0 on t0: element type must be that of a1, f32, not f16

// -----

au.program @p target "small" {
  au.arg a0 "tab" : memref<?x?xf128>
  au.arg a1 "D" : index
  au.tu t0 = 0 to a1 step 1
  au.row r0 on t0 = a0[t0 * a1] len a1 : f128
}
// CHECK: error: 'au.row' ({{.*}}): element type must be one of i8, i16, i32, i64, index, f16, bf16, f32, f64, not f128

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.row r0 on t0 = a1[t0 * a2] len a2 : f32
  au.row r0 on t0 = a1[t0 * a2] len a2 : f32
}
// CHECK: error: 'au.program' ({{.*}}): au.row r0 on t0: name must be defined once, not r0 again

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  "au.row"() <{row = #au.slot<r0>, unit = #au.slot<t0>, base = #au.slot<a1>, index = #au.slot<t0>, pitch = #au.slot<a2>, length = #au.slot<a2>, clip_to = #au.slot<a2>, element_type = f32}> : () -> ()
}
// CHECK: error: 'au.row' ({{.*}}): clip of a row must be given with both ends or absent, not one end

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.push t0 ite id 0 ()
}
// CHECK: error: 'au.push' ({{.*}}): id of a push must be at least 1, because 0 is the done token, not 0

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.push t1 ite id 1 ()
}
// CHECK: error: 'au.program' ({{.*}}): au.push t1 ite: unit must be defined above, not t1

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.push t0 ite id 1 (r0)
}
// CHECK: error: 'au.program' ({{.*}}): au.push t0 ite: slot must be defined above, not r0

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.push t0 end id 1 (t0)
}
// CHECK: error: 'au.program' ({{.*}}): au.push t0 end: slot must be of a proper ancestor of its unit, not t0 of t0

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.push t0 ite id 1 (t0)
  au.push t0 ite id 2 ()
}
// CHECK: error: 'au.program' ({{.*}}): au.push t0 ite: push must be given once for a unit and event, not given again

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  %c = arith.constant 0 : index
}
// CHECK: error: 'au.program' ({{.*}}): op of an au.program must be an au record, not arith.constant

// -----

au.program @p target "small" {
  
}
// CHECK: error: 'au.program' ({{.*}}): number of root units of an au.program must be 1, not 0

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.arg a3 "idx" : memref<?xindex> {request}
}
// CHECK: error: 'au.arg' ({{.*}}): type of a request's argument must be index, not a memref

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.arg a3 "B" : index {queue}
}
// CHECK: error: {{.*}}: attribute of the record must be request, not queue

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.mem s0 on t0 = a0[t0] : index {nontemporal, keep}
}
// CHECK: error: 'au.mem' ({{.*}}): hint of a stream must be nontemporal or keep, not both

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.row r0 on t0 = a1[t0 * a2] len a2 : f32 {queue}
}
// CHECK: error: {{.*}}: attribute of the record must be bytes or nontemporal or keep, not queue

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.row r0 on t0 = a1[t0 * a2] len a2 : f32 {keep, nontemporal}
}
// CHECK: error: 'au.row' ({{.*}}): hint of a stream must be nontemporal or keep, not both

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.row r0 on t0 = a1[t0 * a2 + t0] len 4 clip t0 to a2 : f32 {bytes}
}
// CHECK: error: 'au.row' ({{.*}}): row in bytes must be a whole row, not one with an offset or clip

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.row r0 on t0 = a1[t0 * a2] at r1 len a2 : f32
}
// CHECK: error: 'au.row' ({{.*}}): table of a row must be tN, sN, aN or an integer, not r1

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.row r0 on t0 = a1[t0 * a2] rows r1 len a2 : f32
}
// CHECK: error: 'au.row' ({{.*}}): rows of a row's table must be tN, sN, aN or an integer, not r1

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.arg a1 "tab" : memref<?x?xf32>
  au.arg a2 "D" : index
  au.tu t0 = 0 to a2 step 1
  au.row r0 on t0 = a1[t0 * a2] at s7 len a2 : f32
}
// CHECK: error: 'au.program' ({{.*}}): au.row r0 on t0: slot must be defined above, not s7

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.tu t0 = 0 to 4 step 1
  au.tu t1 under t0 = 0 to 2 step 1 {relay}
}
// CHECK: error: 'au.tu' ({{.*}}): bounds of a relay must be 0 to 1 or x to x + 1, below another, not 0 to 2

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.tu t0 = 0 to 4 step 1
  au.tu t1 under t0 = t0 to t0 + 2 step 1 {relay}
}
// CHECK: error: 'au.tu' ({{.*}}): bounds of a relay must be 0 to 1 or x to x + 1, below another, not t0 to t0 + 2

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.tu t0 = 0 to 1 step 1 {relay}
}
// CHECK: error: 'au.tu' ({{.*}}): bounds of a relay must be 0 to 1 or x to x + 1, below another, not 0 to 1

// -----

au.program @p target "small" {
  au.arg a0 "off" : memref<?xindex>
  au.tu t0 = 0 to 4 step 1 {keep}
}
// CHECK: error: {{.*}}: attribute of the record must be relay, not keep

// -----

"au.program"() <{sym_name = "p", target = "small"}> ({
  "au.arg"() <{argument = #au.slot<a0>, symbol = "off", type = memref<?xindex>}> : () -> ()
  "au.tu"() <{unit = #au.slot<t0>, lower = #au.slot<0>, upper = #au.slot<4>, step = 1 : i64}> : () -> ()
  "au.mem"() <{stream = #au.slot<s0>, unit = #au.slot<t0>, base = #au.slot<a0>, index = #au.slot<t0>, constant = 3 : i64, element_type = index}> : () -> ()
}) : () -> ()
// CHECK: error: 'au.mem' ({{.*}}): constant of an address must be one behind an offset, not 3

// -----

au.program @p target "small" {
  au.arg a0 "tab" : memref<?x?xf32>
  au.tu t0 = 0 to 4 step 1
  au.row r0 on t0 = a0[t0 * 8 + t0 + 1] len 4 : f32
}
// CHECK: error: {{.*}}: address of a row must be aN[slot * pitch + slot], not with 1 more
