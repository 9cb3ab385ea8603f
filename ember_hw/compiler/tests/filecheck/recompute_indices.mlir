// RUN: %ember-opt -p recompute-indices %s | filecheck %s
// RUN: %ember-opt -p 'recompute-indices{eager=true}' %s | filecheck %s --check-prefix=EAGER

// An index of one stream is sent as that stream, a quotient as its operands, a sum of two stays.

func.func @f(%n: index, %x: memref<?xindex>, %y: memref<?xindex>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    %l = slc.mem_stream %x[%i] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
    %dead = slc.mem_stream %y[%i] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
    %p = slc.alu_stream<mul> %i, %c4 : !slc.stream<index>, index -> !slc.stream<index>
    %s = slc.alu_stream<add> %i, %l : !slc.stream<index>, !slc.stream<index> -> !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t0, ite, %s : !dlc.tu, !slc.stream<index>
    dlc.register_callback %t0, end {id = 2 : i64} : !dlc.tu
    dlc.yield
  } :
  dlc.compute_loop
  case 1 {
    %sum = dlc.pop_operand : index
    memref.store %sum, %y[%sum] : memref<?xindex>
    dlc.yield
  }
  case 2 {
    dlc.yield
  }
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    %p = slc.alu_stream<mul> %i, %c4 : !slc.stream<index>, index -> !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t0, ite, %p : !dlc.tu, !slc.stream<index>
    dlc.yield
  } :
  dlc.compute_loop
  case 1 {
    %product = dlc.pop_operand : index
    memref.store %product, %y[%product] : memref<?xindex>
    dlc.yield
  }
  func.return
}
// CHECK-NOT:   %dead
// CHECK:       dlc.register_operand %t0, ite, %s
// CHECK:       %sum = dlc.pop_operand : index
// CHECK:       dlc.register_operand %t0_1, ite, %i_1
// CHECK:       %i_2 = dlc.pop_operand : index
// CHECK-NEXT:  %p = arith.muli %i_2, %c4 : index
// CHECK-NEXT:  memref.store %p, %y[%p]

// EAGER:       dlc.register_operand %t0, ite, %i
// EAGER-NEXT:  dlc.register_operand %t0, ite, %l
// EAGER:       %i_1 = dlc.pop_operand : index
// EAGER-NEXT:  %l_1 = dlc.pop_operand : index
// EAGER-NEXT:  %s = arith.addi %i_1, %l_1 : index
