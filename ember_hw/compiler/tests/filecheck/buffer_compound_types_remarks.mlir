// RUN: %ember-opt --split-input-file -p 'buffer-compound-types' %s | filecheck %s

// Every reason to leave a loop without rows.

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %k: memref<?xi64>, %p: i1, %f: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %all = arith.constant dense<true> : vector<4xi1>
  %some = arith.constant dense<[true, false, true, true]> : vector<4xi1>
  %zeros = arith.constant dense<0.0> : vector<4xf32>
  %z = slc.to_stream %c0 : index to !slc.stream<index>
  %u = slc.to_stream %c1 : index to !slc.stream<index>
  %v4 = slc.to_stream %c4 : index to !slc.stream<index>
  %w = slc.to_stream %zeros : vector<4xf32> to !slc.stream<vector<4xf32>>
  slcvec.for<4>(%d xx %m) = %c0 to %n step %c4 mask %all : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
    slc.callback {
      %h = slc.from_stream %w : !slc.stream<vector<4xf32>> to vector<4xf32>
    }
  } {loopConfig = #slcvec<loop_config bcast>}
  func.return
}
// CHECK: ember.remark = "not buffered: it isn't inside a scalar loop"

// -----

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %k: memref<?xi64>, %p: i1, %f: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %all = arith.constant dense<true> : vector<4xi1>
  %some = arith.constant dense<[true, false, true, true]> : vector<4xi1>
  %zeros = arith.constant dense<0.0> : vector<4xf32>
  %z = slc.to_stream %c0 : index to !slc.stream<index>
  %u = slc.to_stream %c1 : index to !slc.stream<index>
  %v4 = slc.to_stream %c4 : index to !slc.stream<index>
  slc.for %r = %c0 to %n step %c1 : index -> !slc.stream<index> {
    slcvec.for<4>(%d xx %m) = %c1 to %n step %c4 mask %all : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
      %v = slcvec.mem_stream %t[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
      slc.callback {
        %h = slc.from_stream %v : !slc.stream<vector<4xf32>> to vector<4xf32>
      }
    } {loopConfig = #slcvec<loop_config bcast>}
  }
  func.return
}
// CHECK: ember.remark = "not buffered: its lower bound isn't the constant 0"

// -----

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %k: memref<?xi64>, %p: i1, %f: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %all = arith.constant dense<true> : vector<4xi1>
  %some = arith.constant dense<[true, false, true, true]> : vector<4xi1>
  %zeros = arith.constant dense<0.0> : vector<4xf32>
  %z = slc.to_stream %c0 : index to !slc.stream<index>
  %u = slc.to_stream %c1 : index to !slc.stream<index>
  %v4 = slc.to_stream %c4 : index to !slc.stream<index>
  slc.for %r = %c0 to %n step %c1 : index -> !slc.stream<index> {
    slcvec.for<4>(%d xx %m) = %z to %r step %v4 mask %all : (!slc.stream<index> xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
      %v = slcvec.mem_stream %t[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
      slc.callback {
        %h = slc.from_stream %v : !slc.stream<vector<4xf32>> to vector<4xf32>
      }
    } {loopConfig = #slcvec<loop_config bcast>}
  }
  func.return
}
// CHECK: ember.remark = "not buffered: its upper bound isn't a host value"

// -----

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %k: memref<?xi64>, %p: i1, %f: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %all = arith.constant dense<true> : vector<4xi1>
  %some = arith.constant dense<[true, false, true, true]> : vector<4xi1>
  %zeros = arith.constant dense<0.0> : vector<4xf32>
  %z = slc.to_stream %c0 : index to !slc.stream<index>
  %u = slc.to_stream %c1 : index to !slc.stream<index>
  %v4 = slc.to_stream %c4 : index to !slc.stream<index>
  slc.for %r = %c0 to %n step %c1 : index -> !slc.stream<index> {
    slcvec.for<4>(%d xx %m) = %c0 to %n step %c1 mask %all : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
      %v = slcvec.mem_stream %t[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
      slc.callback {
        %h = slc.from_stream %v : !slc.stream<vector<4xf32>> to vector<4xf32>
      }
    } {loopConfig = #slcvec<loop_config bcast>}
  }
  func.return
}
// CHECK: ember.remark = "not buffered: its element step isn't 1"

// -----

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %k: memref<?xi64>, %p: i1, %f: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %all = arith.constant dense<true> : vector<4xi1>
  %some = arith.constant dense<[true, false, true, true]> : vector<4xi1>
  %zeros = arith.constant dense<0.0> : vector<4xf32>
  %z = slc.to_stream %c0 : index to !slc.stream<index>
  %u = slc.to_stream %c1 : index to !slc.stream<index>
  %v4 = slc.to_stream %c4 : index to !slc.stream<index>
  slc.for %r = %c0 to %n step %c1 : index -> !slc.stream<index> {
    slcvec.for<4>(%d xx %m) = %c0 to %n step %c4 mask %some : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
      %v = slcvec.mem_stream %t[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
      slc.callback {
        %h = slc.from_stream %v : !slc.stream<vector<4xf32>> to vector<4xf32>
      }
    } {loopConfig = #slcvec<loop_config bcast>}
  }
  func.return
}
// CHECK: ember.remark = "not buffered: its mask isn't all true"

// -----

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %k: memref<?xi64>, %p: i1, %f: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %all = arith.constant dense<true> : vector<4xi1>
  %some = arith.constant dense<[true, false, true, true]> : vector<4xi1>
  %zeros = arith.constant dense<0.0> : vector<4xf32>
  %z = slc.to_stream %c0 : index to !slc.stream<index>
  %u = slc.to_stream %c1 : index to !slc.stream<index>
  %v4 = slc.to_stream %c4 : index to !slc.stream<index>
  slc.for %r = %c0 to %n step %c1 : index -> !slc.stream<index> {
    slcvec.for<4>(%d xx %m) = %c0 to %n step %c4 mask %all : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
      %v = slcvec.mem_stream %t[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
      %a = slc.alu_stream<add> %r, %c1 : !slc.stream<index>, index -> !slc.stream<index>
      slc.callback {
        %h = slc.from_stream %v : !slc.stream<vector<4xf32>> to vector<4xf32>
      }
    } {loopConfig = #slcvec<loop_config bcast>}
  }
  func.return
}
// CHECK: ember.remark = "not buffered: it holds 'slc.alu_stream'"

// -----

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %k: memref<?xi64>, %p: i1, %f: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %all = arith.constant dense<true> : vector<4xi1>
  %some = arith.constant dense<[true, false, true, true]> : vector<4xi1>
  %zeros = arith.constant dense<0.0> : vector<4xf32>
  %z = slc.to_stream %c0 : index to !slc.stream<index>
  %u = slc.to_stream %c1 : index to !slc.stream<index>
  %v4 = slc.to_stream %c4 : index to !slc.stream<index>
  slc.for %r = %c0 to %n step %c1 : index -> !slc.stream<index> {
    slcvec.for<4>(%d xx %m) = %c0 to %n step %c4 mask %all : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
      %v = slcvec.mem_stream %t[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
    } {loopConfig = #slcvec<loop_config bcast>}
  }
  func.return
}
// CHECK: ember.remark = "not buffered: it doesn't hold exactly one callback"

// -----

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %k: memref<?xi64>, %p: i1, %f: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %all = arith.constant dense<true> : vector<4xi1>
  %some = arith.constant dense<[true, false, true, true]> : vector<4xi1>
  %zeros = arith.constant dense<0.0> : vector<4xf32>
  %z = slc.to_stream %c0 : index to !slc.stream<index>
  %u = slc.to_stream %c1 : index to !slc.stream<index>
  %v4 = slc.to_stream %c4 : index to !slc.stream<index>
  slc.for %r = %c0 to %n step %c1 : index -> !slc.stream<index> {
    slcvec.for<4>(%d xx %m) = %c0 to %n step %c4 mask %all : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
      %v = slcvec.mem_stream %t[%d, %r] : memref<?x?xf32>[!slc.stream<vector<4xindex>>, !slc.stream<index>] into !slc.stream<vector<4xf32>>
      slc.callback {
        %h = slc.from_stream %v : !slc.stream<vector<4xf32>> to vector<4xf32>
      }
    } {loopConfig = #slcvec<loop_config bcast>}
  }
  func.return
}
// CHECK: ember.remark = "not buffered: %t isn't read row by row"

// -----

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %k: memref<?xi64>, %p: i1, %f: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %all = arith.constant dense<true> : vector<4xi1>
  %some = arith.constant dense<[true, false, true, true]> : vector<4xi1>
  %zeros = arith.constant dense<0.0> : vector<4xf32>
  %z = slc.to_stream %c0 : index to !slc.stream<index>
  %u = slc.to_stream %c1 : index to !slc.stream<index>
  %v4 = slc.to_stream %c4 : index to !slc.stream<index>
  slc.for %r = %c0 to %n step %c1 : index -> !slc.stream<index> {
    slcvec.for<4>(%d xx %m) = %c0 to %n step %c4 mask %all : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
      %v = slcvec.mem_stream %t[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
      %e = slcvec.extract %d[1 : i64] : !slc.stream<vector<4xindex>> -> !slc.stream<index>
      slc.callback {
        %h = slc.from_stream %v : !slc.stream<vector<4xf32>> to vector<4xf32>
      }
    } {loopConfig = #slcvec<loop_config bcast>}
  }
  func.return
}
// CHECK: ember.remark = "not buffered: it uses another lane than lane 0 of its induction variable"

// -----

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %k: memref<?xi64>, %p: i1, %f: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %all = arith.constant dense<true> : vector<4xi1>
  %some = arith.constant dense<[true, false, true, true]> : vector<4xi1>
  %zeros = arith.constant dense<0.0> : vector<4xf32>
  %z = slc.to_stream %c0 : index to !slc.stream<index>
  %u = slc.to_stream %c1 : index to !slc.stream<index>
  %v4 = slc.to_stream %c4 : index to !slc.stream<index>
  slc.for %r = %c0 to %n step %c1 : index -> !slc.stream<index> {
    slcvec.for<4>(%d xx %m) = %c0 to %n step %c4 mask %all : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
      %v = slcvec.mem_stream %t[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
      slc.callback {
        %h = slc.from_stream %m : !slc.stream<vector<4xi1>> to vector<4xi1>
      }
    } {loopConfig = #slcvec<loop_config bcast>}
  }
  func.return
}
// CHECK: ember.remark = "not buffered: its callback reads the induction or mask vector"
