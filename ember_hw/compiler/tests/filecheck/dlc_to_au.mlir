// RUN: %ember-opt -p 'dlc-to-au{target=small}' %s | filecheck %s

// Names in order, host values as arguments, a vector as a clipped part of a row; no cases left.

func.func @eb_sum(%off: memref<?xi64>, %idx: memref<?xi64>, %tab: memref<?x?xf32>, %out: memref<?x?xf32>, %B: index) attributes {ember.args = ["off", "idx", "tab", "out", "B"], ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zeros = arith.constant dense<0.000000e+00> : vector<4xf32>
  %D = memref.dim %tab, %c1 : memref<?x?xf32>
  %0 = slc.to_stream %c1 : index to !slc.stream<index>
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %B step %c1 : index into !dlc.tu
    %b = dlc.get_ind_var %t0 : !slc.stream<index>
    %b1 = slc.alu_stream<add> %b, %c1 : !slc.stream<index>, index -> !slc.stream<index>
    %s64 = slc.mem_stream %off[%b] : memref<?xi64>[!slc.stream<index>] into !slc.stream<i64>
    %s = slc.cast_stream %s64 : !slc.stream<i64> to !slc.stream<index>
    %e64 = slc.mem_stream %off[%b1] : memref<?xi64>[!slc.stream<index>] into !slc.stream<i64>
    %e = slc.cast_stream %e64 : !slc.stream<i64> to !slc.stream<index>
    %t1 = dlc.new_tu %s to %e step %0 {under = 0 : i64} : !slc.stream<index> into !dlc.tu
    %j = dlc.get_ind_var %t1 : !slc.stream<index>
    %i = slc.mem_stream %idx[%j] : memref<?xi64>[!slc.stream<index>] into !slc.stream<i64>
    %r = slc.cast_stream %i : !slc.stream<i64> to !slc.stream<index>
    %t2 = dlc.new_tu %c0 to %D step %c4 {under = 1 : i64} : index into !dlc.tu
    %d = dlc.get_ind_var %t2 : !slc.stream<index>
    %v = slcvec.mem_stream %tab[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<index>] into !slc.stream<vector<4xf32>>
    dlc.register_callback %t2, ite {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t2, ite, %b : !dlc.tu, !slc.stream<index>
    dlc.register_operand %t2, ite, %d : !dlc.tu, !slc.stream<index>
    dlc.register_operand %t2, ite, %v : !dlc.tu, !slc.stream<vector<4xf32>>
    dlc.yield
  } :
  dlc.compute_loop
  case 1 {
    %b_1 = dlc.pop_operand : index
    %d_1 = dlc.pop_operand : index
    %v_1 = dlc.pop_operand : vector<4xf32>
    %mask = slcvec.mask %d_1 %c0 %D %c1 : vector<4xi1>
    %a = vector.maskedload %out[%b_1, %d_1], %mask, %zeros : memref<?x?xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
    %n = arith.addf %a, %v_1 : vector<4xf32>
    vector.maskedstore %out[%b_1, %d_1], %mask, %n : memref<?x?xf32>, vector<4xi1>, vector<4xf32>
    dlc.yield
  }
  func.return
}

// CHECK:      builtin.module {
// CHECK-NEXT:   au.program @eb_sum target "small" {
// CHECK-NEXT:     au.arg a0 "B" : index
// CHECK-NEXT:     au.arg a1 "off" : memref<?xi64>
// CHECK-NEXT:     au.arg a2 "idx" : memref<?xi64>
// CHECK-NEXT:     au.arg a3 "tab.dim1" : index
// CHECK-NEXT:     au.arg a4 "tab" : memref<?x?xf32>
// CHECK-NEXT:     au.arg a5 "tab.pitch" : index
// CHECK-NEXT:     au.tu t0 = 0 to a0 step 1
// CHECK-NEXT:     au.mem s0 on t0 = a1[t0] : i64
// CHECK-NEXT:     au.next s1 on t0 = s0
// CHECK-NEXT:     au.tu t1 under t0 = s0 to s1 step 1
// CHECK-NEXT:     au.mem s2 on t1 = a2[t1] : i64
// CHECK-NEXT:     au.tu t2 under t1 = 0 to a3 step 4
// CHECK-NEXT:     au.row r0 on t2 = a4[s2 * a5 + t2] len 4 clip t2 to a3 : f32
// CHECK-NEXT:     au.push t2 ite id 1 (t0, t2, r0)
// CHECK-NEXT:   }
// CHECK-NEXT: }
