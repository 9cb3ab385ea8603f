// RUN: %ember-opt --split-input-file --verify-diagnostics -p check-dae %s | filecheck %s

// Every message of check-dae on dlc.

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
  func.return
}
// CHECK: error: 'dlc.new_tu' (%t0, {{.*}}): place must be a dlc.configure_access_engine, not func.func

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t0, ite, %i : !dlc.tu, !slc.stream<index>
  } :
  func.return
}
// CHECK: error: 'dlc.configure_access_engine' ({{.*}}): access program must be followed by its dlc.compute_loop, not alone

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.compute_loop
  case 1 {
    %p = dlc.pop_operand : index
  }
  func.return
}
// CHECK: error: 'dlc.compute_loop' ({{.*}}): compute loop must be preceded by its access program, not alone

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t0, ite, %i : !dlc.tu, !slc.stream<index>
  } :
  dlc.compute_loop
  case 1 {
    %p = dlc.pop_operand : f32
  }
  func.return
}
// CHECK: error: 'dlc.compute_loop' ({{.*}}): operands popped in case 1 must be those pushed (index), not (f32)

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t0, ite, %i : !dlc.tu, !slc.stream<index>
    %v = slc.mem_stream %m[%i] : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>
    dlc.register_operand %t0, ite, %v : !dlc.tu, !slc.stream<f32>
  } :
  dlc.compute_loop
  case 1 {
    %q = dlc.pop_operand : f32
    %p = dlc.pop_operand : index
  }
  func.return
}
// CHECK: error: 'dlc.compute_loop' ({{.*}}): operands popped in case 1 must be those pushed (index, f32), not (f32, index)

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t0, ite, %i : !dlc.tu, !slc.stream<index>
  } :
  dlc.compute_loop
  case 1 {
  }
  func.return
}
// CHECK: error: 'dlc.compute_loop' ({{.*}}): operands popped in case 1 must be those pushed (index), not ()

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t0, ite, %i : !dlc.tu, !slc.stream<index>
  } :
  dlc.compute_loop
  case 2 {
    %p = dlc.pop_operand : index
  }
  func.return
}
// CHECK: error: 'dlc.configure_access_engine' ({{.*}}): token 1 must be a case of the compute loop, not missing (and 1 more)

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    dlc.register_callback %t0, end {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t0, ite, %i : !dlc.tu, !slc.stream<index>
  } :
  dlc.compute_loop
  case 1 {
    %p = dlc.pop_operand : index
  }
  func.return
}
// CHECK: error: 'dlc.register_operand' ({{.*}}): event ite of unit 0 must be given a token, not operands only (and 1 more)

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    dlc.register_callback %t0, end {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t0, end, %i : !dlc.tu, !slc.stream<index>
  } :
  dlc.compute_loop
  case 1 {
    %p = dlc.pop_operand : index
  }
  func.return
}
// CHECK: error: 'dlc.register_operand' ({{.*}}): operand on end of unit 0 must be of a proper ancestor of the unit, not %i of unit 0

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    dlc.register_callback %t0, beg {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t0, beg, %i : !dlc.tu, !slc.stream<index>
  } :
  dlc.compute_loop
  case 1 {
    %p = dlc.pop_operand : index
  }
  func.return
}
// CHECK: error: 'dlc.register_operand' ({{.*}}): operand on beg of unit 0 must be of a proper ancestor of the unit, not %i of unit 0

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    %t1 = dlc.new_tu %c0 to %n step %c1 {under = 0 : i64} : index into !dlc.tu
    %j = dlc.get_ind_var %t1 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t0, ite, %j : !dlc.tu, !slc.stream<index>
  } :
  dlc.compute_loop
  case 1 {
    %p = dlc.pop_operand : index
  }
  func.return
}
// CHECK: error: 'dlc.register_operand' ({{.*}}): operand on ite of unit 0 must be of the unit or an ancestor, not %j of unit 1

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    %t1 = dlc.new_tu %c0 to %n step %c1 {under = 0 : i64} : index into !dlc.tu
    %j = dlc.get_ind_var %t1 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 0 : i64} : !dlc.tu
  } :
  dlc.compute_loop
  case 0 {
  }
  func.return
}
// CHECK: error: 'dlc.register_callback' ({{.*}}): id must be at least 1, because 0 means done, not 0

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    %t1 = dlc.new_tu %c0 to %n step %c1 {under = 0 : i64} : index into !dlc.tu
    %j = dlc.get_ind_var %t1 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
    dlc.register_callback %t0, ite {id = 2 : i64} : !dlc.tu
  } :
  dlc.compute_loop
  case 1 {
  }
  case 2 {
  }
  func.return
}
// CHECK: error: 'dlc.register_callback' ({{.*}}): event ite of unit 0 must be given one token, not a second (and 1 more)

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    %t1 = dlc.new_tu %c0 to %n step %c1 {under = 0 : i64} : index into !dlc.tu
    %j = dlc.get_ind_var %t1 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
    dlc.register_callback %t1, ite {id = 1 : i64} : !dlc.tu
  } :
  dlc.compute_loop
  case 1 {
  }
  func.return
}
// CHECK: error: 'dlc.register_callback' ({{.*}}): id must be given to one event, not 1 again

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 {under = 0 : i64} : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
  } :
  dlc.compute_loop
  case 1 {
  }
  func.return
}
// CHECK: error: 'dlc.new_tu' (%t0, {{.*}}): parent of the first unit must be absent, not 0

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    %t1 = dlc.new_tu %c0 to %n step %c1 {under = 1 : i64} : index into !dlc.tu
    %j = dlc.get_ind_var %t1 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
  } :
  dlc.compute_loop
  case 1 {
  }
  func.return
}
// CHECK: error: 'dlc.new_tu' (%t1, {{.*}}): parent must be the number of a unit above, not 1

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    %t1 = dlc.new_tu %c0 to %n step %c1 {under = 0 : i64} : index into !dlc.tu
    %j = dlc.get_ind_var %t1 : !slc.stream<index>
    %t2 = dlc.new_tu %j to %j step %j {under = 0 : i64} : !slc.stream<index> into !dlc.tu
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
  } :
  dlc.compute_loop
  case 1 {
  }
  func.return
}
// CHECK: error: 'dlc.new_tu' (%t2, {{.*}}): bound of unit 2 must be a constant or a stream of the parent or an ancestor, not %j of unit 1 (and 2 more)

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    %t1 = dlc.new_tu %c0 to %n step %c1 {under = 0 : i64} : index into !dlc.tu
    %j = dlc.get_ind_var %t1 : !slc.stream<index>
    %t2 = dlc.new_tu %c0 to %n step %c1 {under = 0 : i64} : index into !dlc.tu
    %l = dlc.get_ind_var %t2 : !slc.stream<index>
    %z = slc.alu_stream<add> %j, %l : !slc.stream<index>, !slc.stream<index> -> !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
  } :
  dlc.compute_loop
  case 1 {
  }
  func.return
}
// CHECK: error: 'slc.alu_stream' (%z, {{.*}}): units of its operands must be on one path, not 2 and 1

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %q = slc.to_stream %n : index to !slc.stream<index>
  } :
  dlc.compute_loop
  func.return
}
// CHECK: error: 'dlc.configure_access_engine' ({{.*}}): number of units must be at least 1, not 0

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
    dlc.yield %n : index
  } :
  dlc.compute_loop
  case 1 {
  }
  func.return
}
// CHECK: error: 'dlc.yield' ({{.*}}): number of values yielded must be 0, not 1

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
    %q = arith.addi %n, %c1 : index
  } :
  dlc.compute_loop
  case 1 {
  }
  func.return
}
// CHECK: error: 'arith.addi' (%q, {{.*}}): op of an access program must be a stream or dlc op of it, not arith.addi

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
  } : index
  dlc.compute_loop
  case 1 {
  }
  func.return
}
// CHECK: error: 'dlc.configure_access_engine' ({{.*}}): number of results must be 0, not 1

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
  } :
  %r = dlc.compute_loop -> index
  case 1 {
  }
  func.return
}
// CHECK: error: 'dlc.compute_loop' (%r, {{.*}}): number of results must be 0, not 1

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
  } :
  dlc.compute_loop
  case 1 {
    dlc.yield %n : index
  }
  func.return
}
// CHECK: error: 'dlc.yield' ({{.*}}): number of values yielded must be 0, not 1

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t0, ite, %i : !dlc.tu, !slc.stream<index>
  } :
  dlc.compute_loop
  case 1 {
    scf.for %d = %c0 to %n step %c1 {
      %p = dlc.pop_operand : index
    }
  }
  func.return
}
// CHECK: error: 'dlc.compute_loop' ({{.*}}): operands popped in case 1 must be those pushed (index), not () (and 1 more)

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
    dlc.register_operand %t0, ite, %i : !dlc.tu, !slc.stream<index>
  } :
  dlc.compute_loop
  case 1 {
    scf.for %d = %c0 to %n step %c1 {
    }
    %p = dlc.pop_operand : index
  }
  func.return
}
// CHECK: error: 'dlc.pop_operand' (%p, {{.*}}): pop must stand above ops with regions, not below scf.for

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
  } :
  dlc.compute_loop
  case 1 {
    %p = dlc.get_var : index
  }
  func.return
}
// CHECK: error: 'dlc.get_var' (%p, {{.*}}): variable 0 must be set at function level before its use, not unset

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.set_var %c0 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
  } :
  dlc.compute_loop
  case 1 {
    %p = dlc.get_var : f32
  }
  func.return
}
// CHECK: error: 'dlc.get_var' (%p, {{.*}}): type of variable 0 must be index as first set, not f32

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.set_var %m : memref<?xf32>
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
  } :
  dlc.compute_loop
  case 1 {
    dlc.increment_var
  }
  func.return
}
// CHECK: error: 'dlc.increment_var' ({{.*}}): variable 0 must be an index or integer to increment, not memref<?xf32>

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  dlc.configure_access_engine {
    %t0 = dlc.new_tu %c0 to %n step %c1 : index into !dlc.tu
    %i = dlc.get_ind_var %t0 : !slc.stream<index>
    dlc.register_callback %t0, ite {id = 1 : i64} : !dlc.tu
  } :
  dlc.compute_loop
  case 1 {
  }
  case 2 {
  }
  func.return
}
// CHECK: error: 'dlc.compute_loop' ({{.*}}): case 2 must be registered on an event, not unreachable

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %p = dlc.pop_operand : index
  func.return
}
// CHECK: error: 'dlc.pop_operand' (%p, {{.*}}): place must be the top level of a case, not func.func
