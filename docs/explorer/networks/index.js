self.MSE_INDEX = [
 {
  "name": "transpose",
  "task": "transpose",
  "title": "Transpose, learned",
  "about": "Trained on examples alone; on fresh 32×32 ones it had 100.0 % of the cells right and solved 100.0 %.",
  "bytes": 1057551
 },
 {
  "name": "rotate90",
  "task": "rotate90",
  "title": "Turn by 90°, learned",
  "about": "Trained on examples alone; on fresh 32×32 ones it had 100.0 % of the cells right and solved 100.0 %.",
  "bytes": 1055909
 },
 {
  "name": "sudoku",
  "task": "sudoku",
  "title": "Sudoku, learned",
  "about": "Trained on examples alone; of fresh puzzles it solved 0 % with 17 givens, 66 % with 25, 97 % with 30, 98 % with 35, 100 % with 40, 100 % with 50, 100 % with 70.",
  "lines": [
   0,
   1,
   2,
   4,
   5,
   6,
   8,
   9,
   10
  ],
  "steps": 30,
  "bytes": 1062734
 },
 {
  "name": "handmade-transpose",
  "task": "transpose",
  "squares": false,
  "title": "Transpose, weights written by hand",
  "about": "Never trained: a proof in weights.",
  "bytes": 113254
 },
 {
  "name": "handmade-rotate90",
  "task": "rotate90",
  "squares": true,
  "title": "Turn by 90°, weights written by hand",
  "about": "Never trained: a proof in weights.",
  "bytes": 113253
 }
];
