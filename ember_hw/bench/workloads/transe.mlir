// Scores of triples, -|h + r - t| in the L1 norm. Ref: TransE, NIPS 2013.
func.func @kernel(%head: memref<?xi32>, %relation: memref<?xi32>, %tail: memref<?xi32>,
                  %entities: memref<?x?xf32>, %relations: memref<?x?xf32>, %out: memref<?xf32>,
                  %N: index)
    attributes {ember.args = ["head", "relation", "tail", "entities", "relations", "out", "N"],
                ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
  %D = memref.dim %entities, %c1 : memref<?x?xf32>
  scf.for %k = %c0 to %N step %c1 {
    %h32 = memref.load %head[%k] : memref<?xi32>
    %r32 = memref.load %relation[%k] : memref<?xi32>
    %t32 = memref.load %tail[%k] : memref<?xi32>
    %h = arith.index_cast %h32 : i32 to index
    %r = arith.index_cast %r32 : i32 to index
    %t = arith.index_cast %t32 : i32 to index
    %q = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {
      %a = memref.load %entities[%h, %d] : memref<?x?xf32>
      %b = memref.load %relations[%r, %d] : memref<?x?xf32>
      %c = memref.load %entities[%t, %d] : memref<?x?xf32>
      %u = arith.addf %a, %b : f32
      %v = arith.subf %u, %c : f32
      %z = math.absf %v : f32
      %n = arith.addf %acc, %z : f32
      scf.yield %n : f32
    }
    %g = arith.negf %q : f32
    memref.store %g, %out[%k] : memref<?xf32>
  }
  func.return
}
