import type { Shape } from '@tutti/tensor'
import { z } from 'zod'
import { MAX_RANK } from '../axes.ts'
import { onnxBuiltin } from '../builtin.ts'
import { MOST } from '../datatypes.ts'
import { refuseOption } from '../input-reader.ts'

const MAX_TEXT = 128
/** Stands for an end that is not written: the runtime stops at the end of the tensor. */
const FAR = 2 ** 31 - 1

/** Takes a part of a tensor. */
export const slice = onnxBuiltin({
  name: 'slice',
  summary: 'Takes a part of a tensor, written as NumPy writes it between brackets.',
  options: z.strictObject({
    index: z
      .string()
      .max(MAX_TEXT)
      .describe(
        'One term for each dimension, with commas between them: `start:stop:step`, a number, which drops the dimension, or `...` for all dimensions that have no term',
      ),
  }),
  inputs: { input: 'any datatype but BF16, of any dims' },
  outputs: { output: 'as `input`, with the extents that `index` leaves' },
  signature: ({ index }, inputs) => {
    const { datatype, dims } = inputs.take('input', { datatypes: MOST })
    const terms = readIndex(index, dims)
    const left = terms.flatMap((term, i) => (term.isOne ? [] : [extentOf(term, dims[i] ?? -1)]))
    return [{ name: 'output', datatype, dims: left.length === 0 ? [1] : left }]
  },
  build: ({ index }, graph) => {
    const terms = readIndex(index, graph.port('input').dims)
    const lists = [
      graph.list(...terms.map(({ start }) => start)),
      graph.list(...terms.map(({ stop }) => stop)),
      graph.list(...terms.map((_, axis) => axis)),
      graph.list(...terms.map(({ step }) => step)),
    ]
    let value = graph.op('Slice', [graph.input('input'), ...lists])
    const dropped = terms.flatMap(({ isOne }, axis) => (isOne ? [axis] : []))
    if (dropped.length > 0 && dropped.length < terms.length) {
      value = graph.op('Squeeze', [value, graph.list(...dropped)])
    } else if (dropped.length > 1) value = graph.op('Reshape', [value, graph.list(1)])
    graph.output('output', value)
  },
  arithmetic: [
    {
      case: 'all',
      equals: '`x[index]`',
      tolerance: 'none',
      except: 'a number for each dimension: the output is [1]',
    },
  ],
})

interface Term {
  readonly start: number
  readonly stop: number
  readonly step: number
  /** True for a number, which drops the dimension. */
  readonly isOne: boolean
}

const ALL: Term = { start: 0, stop: FAR, step: 1, isOne: false }

/** @returns a term for each dimension. @throws PortFault */
function readIndex(index: string, dims: Shape): readonly Term[] {
  const texts = index.split(',').map((text) => text.trim())
  const dots = texts.indexOf('...')
  const count = texts.length - (dots === -1 ? 0 : 1)
  if (dims.length > MAX_RANK || count > dims.length) {
    refuseOption('index', JSON.stringify(index), `at most ${dims.length} terms`)
  }
  const open = Array.from({ length: dims.length - count }, () => ALL)
  const at = dots === -1 ? texts.length : dots
  const axisOf = (i: number): number => (i < at ? i : i - 1 + open.length)
  const terms = texts.map((text, i) => {
    return i === dots ? ALL : readTerm(text, `index[${i}]`, dims[axisOf(i)] ?? -1)
  })
  return dots === -1 ? [...terms, ...open] : terms.toSpliced(dots, 1, ...open)
}

const TERM =
  /^(?<one>-?\d{1,9})$|^(?<start>-?\d{1,9})?:(?<stop>-?\d{1,9})?(?::(?<step>-?\d{1,9})?)?$/

function readTerm(text: string, path: string, extent: number): Term {
  const groups = TERM.exec(text)?.groups
  if (groups === undefined) {
    refuseOption(path, JSON.stringify(text), 'a number, start:stop:step, or ...')
  }
  if (groups['one'] !== undefined) return readNumber(Number(groups['one']), path, extent)
  const step = Number(groups['step'] ?? 1)
  if (step === 0) refuseOption(path, JSON.stringify(text), 'a step that is not 0')
  const [begin, end] = step > 0 ? [0, FAR] : [FAR, -FAR]
  const { start = begin, stop = end } = groups
  return { start: Number(start), stop: Number(stop), step, isOne: false }
}

function readNumber(start: number, path: string, extent: number): Term {
  if (extent !== -1 && (start >= extent || start < -extent)) {
    refuseOption(path, `${start}`, `${-extent} to ${extent - 1}`)
  }
  // -1 ends at the end of the tensor: 0 would be its begin.
  return { start, stop: start === -1 ? FAR : start + 1, step: 1, isOne: true }
}

/** @returns how many elements a term takes of an extent; -1 if that is not known. */
function extentOf({ start, stop, step }: Term, extent: number): number {
  if (extent === -1) return -1
  const clamp = (at: number): number => {
    const from = at < 0 ? at + extent : at
    return step > 0 ? Math.min(Math.max(from, 0), extent) : Math.min(Math.max(from, -1), extent - 1)
  }
  return Math.max(0, Math.ceil((clamp(stop) - clamp(start)) / step))
}
