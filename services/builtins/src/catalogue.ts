import type { z } from 'zod'
import { convertBoxes } from './boxes/convert-boxes.ts'
import { cropBoxes } from './boxes/crop-boxes.ts'
import { cropRotated } from './boxes/crop-rotated.ts'
import { nms } from './boxes/nms.ts'
import { probabilityBoxes } from './boxes/probability-boxes.ts'
import { rotatedNms } from './boxes/rotated-nms.ts'
import { scaleBoxes } from './boxes/scale-boxes.ts'
import type { Builtin, CodeBuiltin } from './builtin.ts'
import { apply } from './elements/apply.ts'
import { arithmetic } from './elements/arithmetic.ts'
import { cast } from './elements/cast.ts'
import { clip } from './elements/clip.ts'
import { compare } from './elements/compare.ts'
import { logical } from './elements/logical.ts'
import { threshold } from './elements/threshold.ts'
import { where } from './elements/where.ts'
import { centerCrop } from './image/center-crop.ts'
import { crop } from './image/crop.ts'
import { imageDecode } from './image/image-decode.ts'
import { imageEncode } from './image/image-encode.ts'
import { letterbox } from './image/letterbox.ts'
import { normalise } from './image/normalise.ts'
import { padToMultiple } from './image/pad-to-multiple.ts'
import { resize } from './image/resize.ts'
import { rotate } from './image/rotate.ts'
import { argmax } from './numeric/argmax.ts'
import { l2Normalise } from './numeric/l2-normalise.ts'
import { meanPool } from './numeric/mean-pool.ts'
import { reduce } from './numeric/reduce.ts'
import { sigmoid } from './numeric/sigmoid.ts'
import { softmax } from './numeric/softmax.ts'
import { topK } from './numeric/top-k.ts'
import { concat } from './shape/concat.ts'
import { expandDims } from './shape/expand-dims.ts'
import { pad } from './shape/pad.ts'
import { positions } from './shape/positions.ts'
import { reshape } from './shape/reshape.ts'
import { select } from './shape/select.ts'
import { shapeOf } from './shape/shape-of.ts'
import { slice } from './shape/slice.ts'
import { split } from './shape/split.ts'
import { squeeze } from './shape/squeeze.ts'
import { stack } from './shape/stack.ts'
import { take } from './shape/take.ts'
import { transpose } from './shape/transpose.ts'
import { base64 } from './text/base64.ts'
import { ctcGreedy } from './text/ctc-greedy.ts'
import { detokenize } from './text/detokenize.ts'
import { joinTexts } from './text/join-texts.ts'
import { labelIndex } from './text/label-index.ts'
import { labelLookup } from './text/label-lookup.ts'
import { tokenize } from './text/tokenize.ts'

/** The built-in steps. One that is added has a file of its own and a line here; the documentation sorts them by folder and name. */
export const BUILTINS = [
  imageDecode,
  imageEncode,
  centerCrop,
  crop,
  letterbox,
  normalise,
  padToMultiple,
  resize,
  rotate,

  convertBoxes,
  cropBoxes,
  cropRotated,
  nms,
  probabilityBoxes,
  rotatedNms,
  scaleBoxes,

  concat,
  expandDims,
  pad,
  positions,
  reshape,
  select,
  shapeOf,
  slice,
  split,
  squeeze,
  stack,
  take,
  transpose,

  apply,
  arithmetic,
  cast,
  clip,
  compare,
  logical,
  threshold,
  where,

  argmax,
  l2Normalise,
  meanPool,
  reduce,
  sigmoid,
  softmax,
  topK,

  base64,
  ctcGreedy,
  tokenize,
  detokenize,
  joinTexts,
  labelIndex,
  labelLookup,
] as const

type Listed = (typeof BUILTINS)[number]
type ListedCode = Extract<Listed, CodeBuiltin>

export type BuiltinName = Listed['name']
/** Names of the built-ins of which `backends` has the code. */
export type CodeBuiltinName = ListedCode['name']
/** The options of a built-in, parsed. */
export type OptionsOf<Name extends BuiltinName> = z.output<
  Extract<Listed, { readonly name: Name }>['options']
>

/** Tells whether `backends` has the code of a built-in of the list. */
export function isCodeBuiltin(
  builtin: Builtin,
): builtin is CodeBuiltin & { readonly name: CodeBuiltinName } {
  return builtin.kind === 'code'
}
