import { KubeError } from '../kube-error.ts'

/** etcd takes objects of 1.5 MiB by default; with what a watch adds, nothing comes near this. */
const LONGEST_LINE_BYTES = 16 * 1024 * 1024
const LINE_FEED = 0x0a

/** Cuts a stream of bytes into lines, wherever the pieces begin and end. */
export interface LineSplitter {
  /** @returns the lines that end in this piece, without their ends; empty ones are left out. */
  push(piece: Buffer): string[]
  /** @returns what came after the last line end, if anything. */
  end(): string | undefined
}

/**
 * @param longestBytes - a longer line is a KubeError `BadResponse`.
 */
export function createLineSplitter(longestBytes = LONGEST_LINE_BYTES): LineSplitter {
  let begun: Buffer[] = []
  let begunBytes = 0
  // Whole lines only become text: a character's bytes may come in two pieces.
  const finish = (last: Buffer): string => {
    const line = begun.length === 0 ? last : Buffer.concat([...begun, last])
    begun = []
    begunBytes = 0
    return line.toString('utf8').trimEnd()
  }
  const check = (bytes: number): void => {
    if (bytes <= longestBytes) return
    throw new KubeError({
      status: 0,
      reason: 'BadResponse',
      message: `a line of the stream has more than ${longestBytes} bytes`,
    })
  }
  return {
    push: (piece) => {
      const lines: string[] = []
      let from = 0
      for (let at = piece.indexOf(LINE_FEED); at !== -1; at = piece.indexOf(LINE_FEED, from)) {
        check(begunBytes + at - from)
        const line = finish(piece.subarray(from, at))
        if (line !== '') lines.push(line)
        from = at + 1
      }
      if (from < piece.length) {
        begun.push(piece.subarray(from))
        begunBytes += piece.length - from
        check(begunBytes)
      }
      return lines
    },
    end: () => {
      const line = finish(Buffer.alloc(0))
      return line === '' ? undefined : line
    },
  }
}
