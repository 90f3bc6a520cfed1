import type { OptionsOf } from '@tutti/builtins'
import { floatsOf, inputOf, outputOf } from '../code-inputs.ts'
import type { OpenedCode } from '../code-step.ts'
import { cornersOf, overlapOf, type RotatedBox, toRotatedBox } from './rotated-box.ts'

/** Numbers of a box. */
const NUMBERS = 5

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
      const kept = suppress(candidatesOf(boxes, scores, options), options)
      const corners = Float32Array.from(kept.flatMap(({ box }) => cornersOf(box).flat()))
      const rows = Int32Array.from(kept, ({ row }) => row)
      const best = Float32Array.from(kept, ({ score }) => score)
      const count = kept.length
      return [
        outputOf('boxes', [count, 4, 2], corners),
        outputOf('scores', [count], best),
        outputOf('indices', [count], rows),
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
