// RUN: %ember-opt %s | %ember-opt | filecheck %s
// RUN: %ember-opt --print-generic %s | filecheck %s --check-prefix=GENERIC
// RUN: %ember-opt --print-generic %s | %ember-opt | filecheck %s

// Every op of slcvec in both forms.

func.func @copy_row(%r: index, %D: index, %x: memref<?x?xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = arith.constant dense<true> : vector<4xi1>
  %z = slc.to_stream %c0 : index to !slc.stream<index>
  %n = slc.to_stream %D : index to !slc.stream<index>
  %st = slc.to_stream %c4 : index to !slc.stream<index>
  %rs = slc.to_stream %r : index to !slc.stream<index>
  %m = slc.to_stream %t : vector<4xi1> to !slc.stream<vector<4xi1>>
  %buf = slcvec.buf_stream : !slc.stream<memref<?xf32>>
  slcvec.for<4>(%d xx %dm) = %z to %n step %st mask %m : (!slc.stream<index> xx !slc.stream<vector<4xi1>>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
    %v = slcvec.mem_stream %x[%rs, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
    slcvec.to_buffer %v, %buf[%d] : !slc.stream<vector<4xf32>> -> !slc.stream<memref<?xf32>>[!slc.stream<vector<4xindex>>]
  } {loopConfig = #slcvec<loop_config bcast>}
  slc.callback {
    %b = slc.from_stream %buf : !slc.stream<memref<?xf32>> to memref<?xf32>
    scf.for %k = %c0 to %D step %c4 {
      %km = slcvec.mask %k %c0 %D %c1 : vector<4xi1>
      %ki = slcvec.vec_indvar %k %c0 %D %c1 : vector<4xindex>
      %w = slcvec.from_buffer %b[%k] : memref<?xf32>[index] -> vector<4xf32>
      vector.maskedstore %y[%k], %km, %w : memref<?xf32>, vector<4xi1>, vector<4xf32>
    }
  }
  func.return
}

// Plain bounds and mask, execute values, an unset loop form, scalars put into a buffer, and the
// bookkeeping casts.
func.func @forms(%n: index, %x: memref<?x?xi32>, %t: vector<16xi1>, %e: vector<2xf32>, %f: f32) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %buf = slcvec.buf_stream : !slc.stream<memref<?xi32>>
  %q = slcvec.for<16>(%d xx %dm) = %c0 to %n step %c16 mask %t init_args(%a = %f) -> (f32) : (index xx vector<16xi1>) -> (!slc.stream<vector<16xindex>> xx !slc.stream<vector<16xi1>>) {
    slcvec.vectorize_for
    %v = slcvec.mem_stream %x[%n, %d] {nontemporal = true} : memref<?x?xi32>[index, !slc.stream<vector<16xindex>>] into !slc.stream<vector<16xi32>>
    %w = slcvec.mem_stream %x[%n, %n] : memref<?x?xi32>[index, index] into !slc.stream<vector<8xi32>>
    %l = slcvec.extract %d[0 : i64] : !slc.stream<vector<16xindex>> -> !slc.stream<index>
    %b = slcvec.broadcast %l : !slc.stream<index> to !slc.stream<vector<3xindex>>
    %s = slcvec.tmp_vec_stream_cast %v : !slc.stream<vector<16xi32>> to !slc.stream<i32>
    slcvec.to_buffer %s, %buf[%l] : !slc.stream<i32> -> !slc.stream<memref<?xi32>>[!slc.stream<index>]
    %c = slc.callback {
      %g = slcvec.tmp_vec_cast %e : vector<2xf32> to f32
      slc.yield %g : f32
    } : f32
    slcvec.yield %c : f32
  }
  func.return
}

// What the execute side computes with lanes.
func.func @lanes(%a: f32, %v: vector<8xf32>, %w: vector<8xf32>, %i: vector<8xi64>, %m: vector<8xi1>) {
  %n = slcvec.fold<add> %a, %v mask %m : f32, vector<8xf32>, vector<8xi1>
  %o = slcvec.fold<maximumf> %a, %v mask %m : f32, vector<8xf32>, vector<8xi1>
  %c = slcvec.compare "ogt", %v, %w : vector<8xf32> -> vector<8xi1>
  %u = slcvec.compare "ult", %i, %i : vector<8xi64> -> vector<8xi1>
  %s = slcvec.select %c, %v, %w : vector<8xi1>, vector<8xf32>
  func.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @copy_row(%r: index, %D: index, %x: memref<?x?xf32>, %y: memref<?xf32>) {
// CHECK-NEXT:     %c0 = arith.constant 0 : index
// CHECK-NEXT:     %c1 = arith.constant 1 : index
// CHECK-NEXT:     %c4 = arith.constant 4 : index
// CHECK-NEXT:     %t = arith.constant dense<true> : vector<4xi1>
// CHECK-NEXT:     %z = slc.to_stream %c0 : index to !slc.stream<index>
// CHECK-NEXT:     %n = slc.to_stream %D : index to !slc.stream<index>
// CHECK-NEXT:     %st = slc.to_stream %c4 : index to !slc.stream<index>
// CHECK-NEXT:     %rs = slc.to_stream %r : index to !slc.stream<index>
// CHECK-NEXT:     %m = slc.to_stream %t : vector<4xi1> to !slc.stream<vector<4xi1>>
// CHECK-NEXT:     %buf = slcvec.buf_stream : !slc.stream<memref<?xf32>>
// CHECK-NEXT:     slcvec.for<4>(%d xx %dm) = %z to %n step %st mask %m : (!slc.stream<index> xx !slc.stream<vector<4xi1>>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
// CHECK-NEXT:       %v = slcvec.mem_stream %x[%rs, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
// CHECK-NEXT:       slcvec.to_buffer %v, %buf[%d] : !slc.stream<vector<4xf32>> -> !slc.stream<memref<?xf32>>[!slc.stream<vector<4xindex>>]
// CHECK-NEXT:       slcvec.yield
// CHECK-NEXT:     } {loopConfig = #slcvec<loop_config bcast>}
// CHECK-NEXT:     slc.callback {
// CHECK-NEXT:       %b = slc.from_stream %buf : !slc.stream<memref<?xf32>> to memref<?xf32>
// CHECK-NEXT:       scf.for %k = %c0 to %D step %c4 {
// CHECK-NEXT:         %km = slcvec.mask %k %c0 %D %c1 : vector<4xi1>
// CHECK-NEXT:         %ki = slcvec.vec_indvar %k %c0 %D %c1 : vector<4xindex>
// CHECK-NEXT:         %w = slcvec.from_buffer %b[%k] : memref<?xf32>[index] -> vector<4xf32>
// CHECK-NEXT:         vector.maskedstore %y[%k], %km, %w : memref<?xf32>, vector<4xi1>, vector<4xf32>
// CHECK-NEXT:       }
// CHECK-NEXT:       slc.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @forms(%n: index, %x: memref<?x?xi32>, %t: vector<16xi1>, %e: vector<2xf32>, %f: f32) {
// CHECK-NEXT:     %c0 = arith.constant 0 : index
// CHECK-NEXT:     %c16 = arith.constant 16 : index
// CHECK-NEXT:     %buf = slcvec.buf_stream : !slc.stream<memref<?xi32>>
// CHECK-NEXT:     %q = slcvec.for<16>(%d xx %dm) = %c0 to %n step %c16 mask %t init_args(%a = %f) -> (f32) : (index xx vector<16xi1>) -> (!slc.stream<vector<16xindex>> xx !slc.stream<vector<16xi1>>) {
// CHECK-NEXT:       slcvec.vectorize_for
// CHECK-NEXT:       %v = slcvec.mem_stream %x[%n, %d] {nontemporal = true} : memref<?x?xi32>[index, !slc.stream<vector<16xindex>>] into !slc.stream<vector<16xi32>>
// CHECK-NEXT:       %w = slcvec.mem_stream %x[%n, %n] : memref<?x?xi32>[index, index] into !slc.stream<vector<8xi32>>
// CHECK-NEXT:       %l = slcvec.extract %d[0 : i64] : !slc.stream<vector<16xindex>> -> !slc.stream<index>
// CHECK-NEXT:       %b = slcvec.broadcast %l : !slc.stream<index> to !slc.stream<vector<3xindex>>
// CHECK-NEXT:       %s = slcvec.tmp_vec_stream_cast %v : !slc.stream<vector<16xi32>> to !slc.stream<i32>
// CHECK-NEXT:       slcvec.to_buffer %s, %buf[%l] : !slc.stream<i32> -> !slc.stream<memref<?xi32>>[!slc.stream<index>]
// CHECK-NEXT:       %c = slc.callback {
// CHECK-NEXT:         %g = slcvec.tmp_vec_cast %e : vector<2xf32> to f32
// CHECK-NEXT:         slc.yield %g : f32
// CHECK-NEXT:       } : f32
// CHECK-NEXT:       slcvec.yield %c : f32
// CHECK-NEXT:     } {loopConfig = #slcvec<loop_config none>}
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @lanes(%a: f32, %v: vector<8xf32>, %w: vector<8xf32>, %i: vector<8xi64>, %m: vector<8xi1>) {
// CHECK-NEXT:     %n = slcvec.fold<add> %a, %v mask %m : f32, vector<8xf32>, vector<8xi1>
// CHECK-NEXT:     %o = slcvec.fold<maximumf> %a, %v mask %m : f32, vector<8xf32>, vector<8xi1>
// CHECK-NEXT:     %c = slcvec.compare "ogt", %v, %w : vector<8xf32> -> vector<8xi1>
// CHECK-NEXT:     %u = slcvec.compare "ult", %i, %i : vector<8xi64> -> vector<8xi1>
// CHECK-NEXT:     %s = slcvec.select %c, %v, %w : vector<8xi1>, vector<8xf32>
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT: }

// GENERIC: %z = "slc.to_stream"(%c0) : (index) -> !slc.stream<index>
// GENERIC: %buf = "slcvec.buf_stream"() : () -> !slc.stream<memref<?xf32>>
// GENERIC: "slcvec.for"(%z, %n, %st, %m) <{vectorLength = 4 : index, loopConfig = #slcvec<loop_config bcast>}> ({
// GENERIC: %v = "slcvec.mem_stream"(%x, %rs, %d) : (memref<?x?xf32>, !slc.stream<index>, !slc.stream<vector<4xindex>>) -> !slc.stream<vector<4xf32>>
// GENERIC: "slcvec.to_buffer"(%v, %buf, %d) : (!slc.stream<vector<4xf32>>, !slc.stream<memref<?xf32>>, !slc.stream<vector<4xindex>>) -> ()
// GENERIC: "slc.callback"() ({
// GENERIC: %b = "slc.from_stream"(%buf) : (!slc.stream<memref<?xf32>>) -> memref<?xf32>
// GENERIC: %km = "slcvec.mask"(%k, %c0, %D, %c1) : (index, index, index, index) -> vector<4xi1>
// GENERIC: %ki = "slcvec.vec_indvar"(%k, %c0, %D, %c1) : (index, index, index, index) -> vector<4xindex>
// GENERIC: %w = "slcvec.from_buffer"(%b, %k) : (memref<?xf32>, index) -> vector<4xf32>
// GENERIC: "slcvec.vectorize_for"() : () -> ()
// GENERIC: %l = "slcvec.extract"(%d) <{index = 0 : i64}> : (!slc.stream<vector<16xindex>>) -> !slc.stream<index>
// GENERIC: %b = "slcvec.broadcast"(%l) : (!slc.stream<index>) -> !slc.stream<vector<3xindex>>
// GENERIC: %s = "slcvec.tmp_vec_stream_cast"(%v) : (!slc.stream<vector<16xi32>>) -> !slc.stream<i32>
// GENERIC: %g = "slcvec.tmp_vec_cast"(%e) : (vector<2xf32>) -> f32
// GENERIC: %n = "slcvec.fold"(%a, %v, %m) <{kind = #slcvec<fold_kind add>}> : (f32, vector<8xf32>, vector<8xi1>) -> f32
// GENERIC: %c = "slcvec.compare"(%v, %w) <{predicate = "ogt"}> : (vector<8xf32>, vector<8xf32>) -> vector<8xi1>
// GENERIC: %s = "slcvec.select"(%c, %v, %w) : (vector<8xi1>, vector<8xf32>, vector<8xf32>) -> vector<8xf32>
