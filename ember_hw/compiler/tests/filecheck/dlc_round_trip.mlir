// RUN: %ember-opt %s | %ember-opt | filecheck %s
// RUN: %ember-opt --print-generic %s | filecheck %s --check-prefix=GENERIC
// RUN: %ember-opt --print-generic %s | %ember-opt | filecheck %s

// Every op of dlc in both forms.

func.func @gather_sum(%n: index, %ix: memref<?xindex>, %tab: memref<?x?xf32>, %y: memref<?xf32>, %D: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = slc.to_stream %c0 : index to !slc.stream<index>
  %u = slc.to_stream %c1 : index to !slc.stream<index>
  %ns = slc.to_stream %n : index to !slc.stream<index>
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %z to %ns step %u : !slc.stream<index> into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    %r = slc.mem_stream %ix[%i] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
    %row = dlc.row_stream %tab[%r] len %D : memref<?x?xf32>[!slc.stream<index>], index into !slc.stream<memref<?xf32>>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t0, ite, %row : !dlc.tu, !slc.stream<memref<?xf32>>
  } :
  dlc.compute_loop
  case 1 {
    %v = dlc.pop_operand : memref<?xf32>
    scf.for %d = %c0 to %D step %c1 {
      %a = memref.load %y[%d] : memref<?xf32>
      %b = memref.load %v[%d] : memref<?xf32>
      %s = arith.addf %a, %b : f32
      memref.store %s, %y[%d] : memref<?xf32>
    }
  }
  func.return
}

// Two units, plain bounds, variables with and without numbers, results of reference text.
func.func @forms(%n: index, %tab: memref<?x?xf32>) {
  dlc.configure
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  dlc.set_var %c0 : index
  dlc.set_var %c1 {id = 2 : i64} : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %t1 = dlc.new_tu %c0 to %n step %c1 {under = 0 : i64} : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    %row = dlc.row_stream %tab[%i] len %n {nontemporal = true} : memref<?x?xf32>[!slc.stream<index>], index into !slc.stream<memref<?xf32>>
    dlc.register_callback %t1, beg {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t1, beg, %row : !dlc.tu, !slc.stream<memref<?xf32>>
    dlc.register_callback %t1, end {id = 7 : i64} : !dlc.tu
  } : {tag = "nest"}
  %r = dlc.compute_loop {tag = "nest"} -> index
  case 1 {
    %v = dlc.pop_operand : memref<?xf32>
  }
  case 7 {
    %a = dlc.get_var : index
    %b = dlc.get_var {id = 2 : i64} : index
    dlc.increment_var
    dlc.increment_var {id = 2 : i64, step = 3 : i64}
  }
  func.return
}

// CHECK: builtin.module {
// CHECK-NEXT:   func.func @gather_sum(%n: index, %ix: memref<?xindex>, %tab: memref<?x?xf32>, %y: memref<?xf32>, %D: index) {
// CHECK-NEXT:     %c0 = arith.constant 0 : index
// CHECK-NEXT:     %c1 = arith.constant 1 : index
// CHECK-NEXT:     %z = slc.to_stream %c0 : index to !slc.stream<index>
// CHECK-NEXT:     %u = slc.to_stream %c1 : index to !slc.stream<index>
// CHECK-NEXT:     %ns = slc.to_stream %n : index to !slc.stream<index>
// CHECK-NEXT:     dlc.configure_access_engine {
// CHECK-NEXT:       %t0 = dlc.new_tu %z to %ns step %u : !slc.stream<index> into !dlc.tu
// CHECK-NEXT:       %i = dlc.get_ind_var %t0 : !slc.stream<index>
// CHECK-NEXT:       %r = slc.mem_stream %ix[%i] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
// CHECK-NEXT:       %row = dlc.row_stream %tab[%r] len %D : memref<?x?xf32>[!slc.stream<index>], index into !slc.stream<memref<?xf32>>
// CHECK-NEXT:       dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
// CHECK-NEXT:       dlc.register_operand %t0, ite, %row : !dlc.tu, !slc.stream<memref<?xf32>>
// CHECK-NEXT:       dlc.yield
// CHECK-NEXT:     } :
// CHECK-NEXT:     dlc.compute_loop
// CHECK-NEXT:     case 1 {
// CHECK-NEXT:       %v = dlc.pop_operand : memref<?xf32>
// CHECK-NEXT:       scf.for %d = %c0 to %D step %c1 {
// CHECK-NEXT:         %a = memref.load %y[%d] : memref<?xf32>
// CHECK-NEXT:         %b = memref.load %v[%d] : memref<?xf32>
// CHECK-NEXT:         %s = arith.addf %a, %b : f32
// CHECK-NEXT:         memref.store %s, %y[%d] : memref<?xf32>
// CHECK-NEXT:       }
// CHECK-NEXT:       dlc.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT:   func.func @forms(%n: index, %tab: memref<?x?xf32>) {
// CHECK-NEXT:     dlc.configure
// CHECK-NEXT:     %c0 = arith.constant 0 : index
// CHECK-NEXT:     %c1 = arith.constant 1 : index
// CHECK-NEXT:     dlc.set_var %c0 : index
// CHECK-NEXT:     dlc.set_var %c1 {id = 2 : i64} : index
// CHECK-NEXT:     dlc.configure_access_engine {
// CHECK-NEXT:       %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
// CHECK-NEXT:       %t1 = dlc.new_tu %c0 to %n step %c1 {under = 0 : i64} : index into !dlc.tu
// CHECK-NEXT:       %i = dlc.get_ind_var %t0 : !slc.stream<index>
// CHECK-NEXT:       %row = dlc.row_stream %tab[%i] len %n {nontemporal = true} : memref<?x?xf32>[!slc.stream<index>], index into !slc.stream<memref<?xf32>>
// CHECK-NEXT:       dlc.register_callback %t1, beg {id = 1 : i64} : !dlc.tu
// CHECK-NEXT:       dlc.register_operand %t1, beg, %row : !dlc.tu, !slc.stream<memref<?xf32>>
// CHECK-NEXT:       dlc.register_callback %t1, end {id = 7 : i64} : !dlc.tu
// CHECK-NEXT:       dlc.yield
// CHECK-NEXT:     } : {tag = "nest"}
// CHECK-NEXT:     %r = dlc.compute_loop {tag = "nest"} -> index
// CHECK-NEXT:     case 1 {
// CHECK-NEXT:       %v = dlc.pop_operand : memref<?xf32>
// CHECK-NEXT:       dlc.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     case 7 {
// CHECK-NEXT:       %a = dlc.get_var : index
// CHECK-NEXT:       %b = dlc.get_var {id = 2 : i64} : index
// CHECK-NEXT:       dlc.increment_var
// CHECK-NEXT:       dlc.increment_var {id = 2 : i64, step = 3 : i64}
// CHECK-NEXT:       dlc.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return
// CHECK-NEXT:   }
// CHECK-NEXT: }

// GENERIC: %z = "slc.to_stream"(%c0) : (index) -> !slc.stream<index>
// GENERIC: "dlc.configure_access_engine"() ({
// GENERIC: %t0 = "dlc.new_tu"(%z, %ns, %u) : (!slc.stream<index>, !slc.stream<index>, !slc.stream<index>) -> !dlc.tu
// GENERIC: %i = "dlc.get_ind_var"(%t0) : (!dlc.tu) -> !slc.stream<index>
// GENERIC: %r = "slc.mem_stream"(%ix, %i) : (memref<?xindex>, !slc.stream<index>) -> !slc.stream<index>
// GENERIC: %row = "dlc.row_stream"(%tab, %r, %D) : (memref<?x?xf32>, !slc.stream<index>, index) -> !slc.stream<memref<?xf32>>
// GENERIC: "dlc.register_callback"(%t0) <{event = #dlc<op_type ite>, id = 1 : i64}> : (!dlc.tu) -> ()
// GENERIC: "dlc.register_operand"(%t0, %row) <{event = #dlc<op_type ite>}> : (!dlc.tu, !slc.stream<memref<?xf32>>) -> ()
// GENERIC: "dlc.compute_loop"() <{cases = array<i64: 1>}> ({
// GENERIC: %v = "dlc.pop_operand"() : () -> memref<?xf32>
// GENERIC: "dlc.configure"() : () -> ()
// GENERIC: "dlc.set_var"(%c0) : (index) -> ()
// GENERIC: %a = "dlc.get_var"() : () -> index
// GENERIC: "dlc.increment_var"() : () -> ()
