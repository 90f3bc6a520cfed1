import { MAX_RUNS } from '@tutti/builtins'
import type { Points } from './polygon.ts'

/** A map of zeros and ones, row after row. */
export interface BitMap {
  readonly width: number
  readonly height: number
  readonly bits: Uint8Array
}

/** The pixels of one border of a region: all that its convex hull needs, and where a scan by rows meets it first. */
export interface Border {
  readonly points: Points
  readonly firstPixel: number
}

/** A piece of a row that has one value, as long as can be. `end` is behind it. */
interface Run {
  readonly row: number
  readonly begin: number
  readonly end: number
  /** A run of the same region or hole: following them leads to one that all have in common, which has none. */
  parent: Run | undefined
}

/**
 * Finds the borders that OpenCV's findContours with RETR_LIST finds: of every region of ones, whose pixels touch by sides or
 * corners, and of every hole in one, whose pixels touch by sides. The last that a scan meets comes first.
 */
export function findBorders(map: BitMap): readonly Border[] {
  const regions = groupRuns(collectRuns(map, 1), 1).map(regionBorder(map))
  const holes = groupRuns(collectRuns(map, 0), 0).filter(isInside(map)).map(holeBorder(map))
  return [...regions, ...holes].toSorted((a, b) => b.firstPixel - a.firstPixel)
}

/** Makes pixels of one also out of those right of, below, and diagonally behind one, as OpenCV's dilate does with 2 by 2 ones. */
export function dilate({ width, height, bits }: BitMap): BitMap {
  const out = bits.slice()
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const at = y * width + x
      if (bits[at] === 0) continue
      if (x + 1 < width) out[at + 1] = 1
      if (y + 1 < height) out[at + width] = 1
      if (x + 1 < width && y + 1 < height) out[at + width + 1] = 1
    }
  }
  return { width, height, bits: out }
}

/** Thrown for a map with more than MAX_RUNS runs of zeros or ones. */
export class TooManyRuns extends Error {}

/** The runs of a value, by rows. @throws TooManyRuns */
function collectRuns({ width, height, bits }: BitMap, value: number): readonly Run[][] {
  let count = 0
  return Array.from({ length: width === 0 ? 0 : height }, (_, row) => {
    const pixels = bits.subarray(row * width, (row + 1) * width)
    const runs: Run[] = []
    for (let begin = pixels.indexOf(value); begin >= 0; ) {
      const next = pixels.indexOf(1 - value, begin)
      const end = next < 0 ? width : next
      runs.push({ row, begin, end, parent: undefined })
      count += 1
      if (count > MAX_RUNS) throw new TooManyRuns()
      begin = next < 0 ? -1 : pixels.indexOf(value, end)
    }
    return runs
  })
}

/** The runs of one region or hole, by rows. */
type Group = readonly Run[]

/** Groups runs that touch. @param reach - how far runs of neighbouring rows may be apart: 1 to touch by corners, 0 by sides. */
function groupRuns(rows: readonly Run[][], reach: number): readonly Group[] {
  for (const [y, runs] of rows.entries()) joinRows(rows[y - 1] ?? [], runs, reach)
  const groups = new Map<Run, Run[]>()
  for (const run of rows.flat()) {
    const root = rootOf(run)
    const group = groups.get(root)
    if (group === undefined) groups.set(root, [run])
    else group.push(run)
  }
  return [...groups.values()]
}

function joinRows(above: readonly Run[], below: readonly Run[], reach: number): void {
  let i = 0
  let j = 0
  for (;;) {
    const [upper, lower] = [above[i], below[j]]
    if (upper === undefined || lower === undefined) return
    if (upper.begin < lower.end + reach && lower.begin < upper.end + reach) {
      const [root, other] = [rootOf(upper), rootOf(lower)]
      if (root !== other) other.parent = root
    }
    if (upper.end <= lower.end) i += 1
    else j += 1
  }
}

function rootOf(run: Run): Run {
  let root = run
  while (root.parent !== undefined) {
    root.parent = root.parent.parent ?? root.parent
    root = root.parent
  }
  return root
}

function isInside({ width, height }: BitMap): (group: Group) => boolean {
  return (group) =>
    group.every(({ row, begin, end }) => row > 0 && row < height - 1 && begin > 0 && end < width)
}

function regionBorder({ width }: BitMap): (group: Group) => Border {
  return (group) => {
    const points = group.flatMap(({ row, begin, end }) => [begin, row, end - 1, row])
    return { points, firstPixel: firstPixelOf(group, width) }
  }
}

/** The pixels of the region around a hole: one step from the hole's. Those of regions within it lie between them. */
function holeBorder({ width }: BitMap): (group: Group) => Border {
  return (group) => {
    const points = group.flatMap(({ row, begin, end }) => {
      const sides = [begin - 1, row, end, row]
      return [...sides, begin, row - 1, end - 1, row - 1, begin, row + 1, end - 1, row + 1]
    })
    return { points, firstPixel: firstPixelOf(group, width) - 1 }
  }
}

function firstPixelOf([first]: Group, width: number): number {
  return first === undefined ? 0 : first.row * width + first.begin
}
