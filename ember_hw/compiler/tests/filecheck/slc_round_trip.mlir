// RUN: %ember-opt %s | %ember-opt | filecheck %s
// RUN: %ember-opt --print-generic %s | filecheck %s --check-prefix=GENERIC
// RUN: %ember-opt --print-generic %s | %ember-opt | filecheck %s

// Every op of slc in both forms.

func.func @shifted_sum(%n: index, %x: memref<?xf32>, %acc: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = slc.to_stream %c0 : index to !slc.stream<index>
  %u = slc.to_stream %c1 : index to !slc.stream<index>
  %ns = slc.to_stream %n : index to !slc.stream<index>
  slc.for %i = %z to %ns step %u : !slc.stream<index> -> !slc.stream<index> {
    %k = slc.alu_stream<add> %i, %u : !slc.stream<index>, !slc.stream<index> -> !slc.stream<index>
    %v = slc.mem_stream %x[%k] : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>
    slc.callback {
      %iv = slc.from_stream %i : !slc.stream<index> to index
      %vv = slc.from_stream %v : !slc.stream<f32> to f32
      %a = memref.load %acc[%iv] : memref<?xf32>
      %s = arith.addf %a, %vv : f32
      memref.store %s, %acc[%iv] : memref<?xf32>
    }
  }
  func.return
}

// Index bounds, execute values, integer streams, attributes, the blank before the ALU operation,
// result types that the body doesn't yield, and the markers.
func.func @forms(%n: index, %x: memref<?x?xi32>, %f: f32) {
  slc.configure
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = slc.for %i = %c0 to %n step %c1 init_args(%a = %f) -> (f32) : index -> !slc.stream<index> {
    slc.accelerate_for
    %k = slc.alu_stream< div> %i, %n : !slc.stream<index>, index -> !slc.stream<index>
    %v = slc.mem_stream %x[%k, %c1] {nontemporal = true} : memref<?x?xi32>[!slc.stream<index>, index] into !slc.stream<i32>
    %j = slc.cast_stream %v : !slc.stream<i32> to !slc.stream<index>
    %b = slc.callback {
      %s = arith.addf %a, %a : f32
      slc.yield %s : f32
    } : f32 {tag = "sum"}
    slc.callback {
    } : index
    slc.yield %b : f32
  } {ember.remark = "kept"}
  func.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @shifted_sum(%n: index, %x: memref<?xf32>, %acc: memref<?xf32>) {
// CHECK-NEXT:     %c0 = arith.constant 0 : index
// CHECK-NEXT:     %c1 = arith.constant 1 : index
// CHECK-NEXT:     %z = slc.to_stream %c0 : index to !slc.stream<index>
// CHECK-NEXT:     %u = slc.to_stream %c1 : index to !slc.stream<index>
// CHECK-NEXT:     %ns = slc.to_stream %n : index to !slc.stream<index>
// CHECK-NEXT:     slc.for %i = %z to %ns step %u : !slc.stream<index> -> !slc.stream<index> {
// CHECK-NEXT:       %k = slc.alu_stream<add> %i, %u : !slc.stream<index>, !slc.stream<index> -> !slc.stream<index>
// CHECK-NEXT:       %v = slc.mem_stream %x[%k] : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>
// CHECK-NEXT:       slc.callback {
// CHECK-NEXT:         %iv = slc.from_stream %i : !slc.stream<index> to index
// CHECK-NEXT:         %vv = slc.from_stream %v : !slc.stream<f32> to f32
// CHECK-NEXT:         %a = memref.load %acc[%iv] : memref<?xf32>
// CHECK-NEXT:         %s = arith.addf %a, %vv : f32
// CHECK-NEXT:         memref.store %s, %acc[%iv] : memref<?xf32>
// CHECK-NEXT:         slc.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       slc.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @forms(%n: index, %x: memref<?x?xi32>, %f: f32) {
// CHECK-NEXT:     slc.configure
// CHECK-NEXT:     %c0 = arith.constant 0 : index
// CHECK-NEXT:     %c1 = arith.constant 1 : index
// CHECK-NEXT:     %r = slc.for %i = %c0 to %n step %c1 init_args(%a = %f) -> (f32) : index -> !slc.stream<index> {
// CHECK-NEXT:       slc.accelerate_for
// CHECK-NEXT:       %k = slc.alu_stream<div> %i, %n : !slc.stream<index>, index -> !slc.stream<index>
// CHECK-NEXT:       %v = slc.mem_stream %x[%k, %c1] {nontemporal = true} : memref<?x?xi32>[!slc.stream<index>, index] into !slc.stream<i32>
// CHECK-NEXT:       %j = slc.cast_stream %v : !slc.stream<i32> to !slc.stream<index>
// CHECK-NEXT:       %b = slc.callback {
// CHECK-NEXT:         %s = arith.addf %a, %a : f32
// CHECK-NEXT:         slc.yield %s : f32
// CHECK-NEXT:       } : f32 {tag = "sum"}
// CHECK-NEXT:       slc.callback {
// CHECK-NEXT:         slc.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       slc.yield %b : f32
// CHECK-NEXT:     } {ember.remark = "kept"}
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT: }

// GENERIC: %z = "slc.to_stream"(%c0) : (index) -> !slc.stream<index>
// GENERIC: "slc.for"(%z, %ns, %u) ({
// GENERIC: %k = "slc.alu_stream"(%i, %u) <{aluOp = #slc<op_type add>}> : (!slc.stream<index>, !slc.stream<index>) -> !slc.stream<index>
// GENERIC: %v = "slc.mem_stream"(%x, %k) : (memref<?xf32>, !slc.stream<index>) -> !slc.stream<f32>
// GENERIC: "slc.callback"() ({
// GENERIC: %iv = "slc.from_stream"(%i) : (!slc.stream<index>) -> index
// GENERIC: "slc.configure"() : () -> ()
// GENERIC: "slc.accelerate_for"() : () -> ()
// GENERIC: %j = "slc.cast_stream"(%v) : (!slc.stream<i32>) -> !slc.stream<index>
