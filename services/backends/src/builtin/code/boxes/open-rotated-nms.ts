import type { OptionsOf } from '@tutti/builtins'
import { floatsOf, inputOf, misfit } from '../code-inputs.ts'
import type { OpenedCode } from '../code-step.ts'
import { cornersOf, overlapOf, type RotatedBox, toRotatedBox } from './rotated-box.ts'

/** Numbers of a box. */
const NUMBERS = 5

/** Most boxes that are compared, each of which takes some hundred bytes. */
const MAX_CANDIDATES = 2 ** 20

/** A box that may be kept. */
interface Candidate {
  readonly row: number
  readonly score: number
  readonly box: RotatedBox
}

/** Opens `rotatedNms`. */
export function openRotatedNms(options: OptionsOf<'rotatedNms'>): OpenedCode {
  return {
    run: (inputs) => {
      const boxes = floatsOf(inputOf(inputs, 'boxes'))
      const scores = floatsOf(inputOf(inputs, 'scores'))
      const count = boxes.length / NUMBERS
      if (scores.length !== count)
        throw misfit('scores', `${scores.length} rows`, `${count}, as boxes has`)
      const kept = suppress(candidatesOf(boxes, scores, options), options)
      const corners = Float32Array.from(kept.flatMap(({ box }) => cornersOf(box).flat()))
      const rows = BigInt64Array.from(kept, ({ row }) => BigInt(row))
      const best = Float32Array.from(kept, ({ score }) => score)
      const shape = [kept.length]
      return [
        {
          name: 'boxes',
          datatype: 'FP32',
          shape: [kept.length, 4, 2],
          data: new Uint8Array(corners.buffer),
        },
        { name: 'scores', datatype: 'FP32', shape, data: new Uint8Array(best.buffer) },
        { name: 'indices', datatype: 'INT64', shape, data: new Uint8Array(rows.buffer) },
      ]
    },
  }
}

/** The boxes over the threshold, by falling score. */
function candidatesOf(
  boxes: Float32Array,
  scores: Float32Array,
  { scoreThreshold }: OptionsOf<'rotatedNms'>,
): readonly Candidate[] {
  const threshold = Math.fround(scoreThreshold)
  const found: Candidate[] = []
  scores.forEach((score, row) => {
    if (!(score > threshold)) return
    const numbers = boxes.subarray(row * NUMBERS, (row + 1) * NUMBERS)
    const [, , width = 0, height = 0] = numbers
    if (found.length === MAX_CANDIDATES) {
      throw misfit('scores', `more than ${MAX_CANDIDATES} over scoreThreshold`, 'fewer')
    }
    if (numbers.every(Number.isFinite) && width > 0 && height > 0) {
      found.push({ row, score, box: toRotatedBox(numbers) })
    }
  })
  return found.toSorted((a, b) => b.score - a.score)
}

function suppress(
  candidates: readonly Candidate[],
  { iouThreshold, maxOutputs }: OptionsOf<'rotatedNms'>,
): readonly Candidate[] {
  const kept: Candidate[] = []
  for (const candidate of candidates) {
    if (kept.length === maxOutputs) break
    const isFree = kept.every(({ box }) => overlapOf(box, candidate.box) <= iouThreshold)
    if (isFree) kept.push(candidate)
  }
  return kept
}
