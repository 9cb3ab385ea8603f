// RUN: %ember-opt --split-input-file --verify-diagnostics %s | filecheck %s

// Every message of the ops that compute with lanes.

func.func @f(%a: f32, %v: vector<5xf32>, %m: vector<5xi1>) {
  %n = slcvec.fold<add> %a, %v mask %m : f32, vector<5xf32>, vector<5xi1>
  func.return
}
// CHECK: error: 'slcvec.fold' ({{.*}}): type of the lanes must be a vector of 2, 3, 4, 8, 16, 32, 64 lanes, not vector<5xf32>

// -----

func.func @f(%a: f32, %v: vector<4xf32>, %m: vector<4xi1>) {
  %n = slcvec.fold<xor> %a, %v mask %m : f32, vector<4xf32>, vector<4xi1>
  func.return
}
// CHECK: error: 'slcvec.fold' ({{.*}}): element of the lanes must be one that 'xor' takes, not f32

// -----

func.func @f(%a: f64, %v: vector<4xf32>, %m: vector<4xi1>) {
  %n = slcvec.fold<add> %a, %v mask %m : f64, vector<4xf32>, vector<4xi1>
  func.return
}
// CHECK: error: 'slcvec.fold' ({{.*}}): type of the folded value must be the lanes' element type f32, not f64

// -----

func.func @f(%a: f32, %v: vector<4xf32>, %m: vector<8xi1>) {
  %n = slcvec.fold<add> %a, %v mask %m : f32, vector<4xf32>, vector<8xi1>
  func.return
}
// CHECK: error: 'slcvec.fold' ({{.*}}): type of the mask must be vector<4xi1>, not vector<8xi1>

// -----

func.func @f(%m: vector<4xi1>) {
  %n = slcvec.compare "eq", %m, %m : vector<4xi1> -> vector<4xi1>
  func.return
}
// CHECK: error: 'slcvec.compare' ({{.*}}): element of the operands must be a float, index or integer wider than i1, not i1

// -----

func.func @f(%v: vector<4xi64>) {
  %n = slcvec.compare "olt", %v, %v : vector<4xi64> -> vector<4xi1>
  func.return
}
// CHECK: error: 'slcvec.compare' ({{.*}}): predicate must be one of eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge, not "olt"

// -----

func.func @f(%v: vector<4xi64>, %m: vector<8xi1>) {
  %n = slcvec.select %m, %v, %v : vector<8xi1>, vector<4xi64>
  func.return
}
// CHECK: error: 'slcvec.select' ({{.*}}): type of the mask must be vector<4xi1>, not vector<8xi1>
