// RUN: %ember-opt -p 'choose-decoupling,scf-to-slc,slc-vectorizer{vector-length=4},simplify-casts,callback-vectorizer,simplify-mem-ops,count-lanes' %s | filecheck %s

// Where a sum is carried from vector to vector, the position of lane 0 is carried too.

func.func @kernel(%hd: memref<?xindex>, %rl: memref<?xindex>, %tl: memref<?xindex>, %tab: memref<?x?xf32>, %rel: memref<?x?xf32>, %out: memref<?xf32>, %N: index) attributes {ember.args = ["hd", "rl", "tl", "tab", "rel", "out", "N"], ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
  %D = memref.dim %tab, %c1 : memref<?x?xf32>
  scf.for %k = %c0 to %N step %c1 {
    %h = memref.load %hd[%k] : memref<?xindex>
    %r = memref.load %rl[%k] : memref<?xindex>
    %t = memref.load %tl[%k] : memref<?xindex>
    %q = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {
      %a = memref.load %tab[%h, %d] : memref<?x?xf32>
      %b = memref.load %rel[%r, %d] : memref<?x?xf32>
      %c = memref.load %tab[%t, %d] : memref<?x?xf32>
      %x = arith.addf %a, %b : f32
      %y = arith.subf %x, %c : f32
      %z = math.absf %y : f32
      %n = arith.addf %acc, %z : f32
      scf.yield %n : f32
    }
    %g = arith.negf %q : f32
    memref.store %g, %out[%k] : memref<?xf32>
  }
  func.return
}

// CHECK:          slc.for %k = %c0 to %N step %c1 : index -> !slc.stream<index> {
// CHECK-NEXT:       %h = slc.mem_stream %hd[%k] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
// CHECK-NEXT:       %r = slc.mem_stream %rl[%k] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
// CHECK-NEXT:       %t = slc.mem_stream %tl[%k] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
// CHECK-NEXT:       %q, %0 = slcvec.for<4>(%d xx %mask) = %c0 to %D step %c4 mask %all init_args(%acc = %f0, %d_1 = %c0) -> (f32, index) : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
// CHECK-NEXT:         %a = slcvec.mem_stream %tab[%h, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
// CHECK-NEXT:         %b = slcvec.mem_stream %rel[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
// CHECK-NEXT:         %c = slcvec.mem_stream %tab[%t, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
// CHECK-NEXT:         %n, %1 = slc.callback {
// CHECK-NEXT:           %a_1 = slc.from_stream %a : !slc.stream<vector<4xf32>> to vector<4xf32>
// CHECK-NEXT:           %b_1 = slc.from_stream %b : !slc.stream<vector<4xf32>> to vector<4xf32>
// CHECK-NEXT:           %c_1 = slc.from_stream %c : !slc.stream<vector<4xf32>> to vector<4xf32>
// CHECK-NEXT:           %mask_1 = slcvec.mask %d_1 %c0 %D %c1 : vector<4xi1>
// CHECK-NEXT:           %x = arith.addf %a_1, %b_1 : vector<4xf32>
// CHECK-NEXT:           %y = arith.subf %x, %c_1 : vector<4xf32>
// CHECK-NEXT:           %z = math.absf %y : vector<4xf32>
// CHECK-NEXT:           %n_1 = slcvec.fold<add> %acc, %z mask %mask_1 : f32, vector<4xf32>, vector<4xi1>
// CHECK-NEXT:           %2 = arith.addi %d_1, %c4 : index
// CHECK-NEXT:           slc.yield %n_1, %2 : f32, index
// CHECK-NEXT:         } : f32, index
// CHECK-NEXT:         slcvec.yield %n, %1 : f32, index
// CHECK-NEXT:       } {loopConfig = #slcvec<loop_config bcast>}
// CHECK-NEXT:       slc.callback {
// CHECK-NEXT:         %k_1 = slc.from_stream %k : !slc.stream<index> to index
// CHECK-NEXT:         %g = arith.negf %q : f32
// CHECK-NEXT:         memref.store %g, %out[%k_1] : memref<?xf32>
// CHECK-NEXT:         slc.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       slc.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return
