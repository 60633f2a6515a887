self.MSE_INDEX = [
 {
  "name": "transpose",
  "task": "transpose",
  "title": "Transpose, learned",
  "about": "Trained on examples alone; on fresh 32×32 ones it had 100.0 % of the cells right and solved 100.0 %.",
  "bytes": 1057491
 },
 {
  "name": "rotate90",
  "task": "rotate90",
  "title": "Turn by 90°, learned",
  "about": "Trained on examples alone; on fresh 32×32 ones it had 100.0 % of the cells right and solved 100.0 %.",
  "bytes": 2110552
 },
 {
  "name": "handmade-transpose",
  "task": "transpose",
  "squares": false,
  "title": "Transpose, weights written by hand",
  "about": "Never trained: a proof in weights.",
  "bytes": 151242
 },
 {
  "name": "handmade-rotate90",
  "task": "rotate90",
  "squares": true,
  "title": "Turn by 90°, weights written by hand",
  "about": "Never trained: a proof in weights.",
  "bytes": 151241
 }
];
