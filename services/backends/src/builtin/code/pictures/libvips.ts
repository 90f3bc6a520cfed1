import { availableParallelism } from 'node:os'
import type { Matrix3x3, Matrix4x4, Sharp, SharpOptions } from 'sharp'

/** Makes a picture of sharp's. */
export type OpenSharp = (input: Uint8Array, options?: SharpOptions) => Sharp

/**
 * Pictures that are worked on at the same time in this process. Each takes a thread of libuv's, which are four by default and serve files
 * and names too.
 */
const MAX_OPEN = Math.max(1, Math.min(2, availableParallelism()))
const LOADERS = ['Jpeg', 'Png', 'Webp'].map((format) => `VipsForeignLoad${format}Buffer`)

let opened: Promise<OpenSharp> | undefined

/**
 * Loads libvips, for JPEG, PNG and WebP in memory alone. It keeps no pictures of earlier calls, and each call computes on one thread: a
 * server has other calls for the others.
 */
export function loadLibvips(): Promise<OpenSharp> {
  opened ??= import('sharp').then(({ default: sharp }) => {
    sharp.cache(false)
    sharp.concurrency(1)
    sharp.block({ operation: ['VipsForeignLoad'] })
    sharp.unblock({ operation: LOADERS })
    return (input, options) => sharp(input, options)
  })
  return opened
}

let open = 0
const waiting: (() => void)[] = []

/** Does some work when fewer than MAX_OPEN are under way. */
export async function inCodecSlot<T>(work: () => Promise<T>): Promise<T> {
  if (open >= MAX_OPEN) await new Promise<void>((resolve) => waiting.push(resolve))
  else open += 1
  try {
    return await work()
  } finally {
    const next = waiting.shift()
    if (next === undefined) open -= 1
    else next()
  }
}

/** The matrix that swaps the first and the third of three or four channels. */
export function swapped(channels: 3 | 4): Matrix3x3 | Matrix4x4 {
  if (channels === 3)
    return [
      [0, 0, 1],
      [0, 1, 0],
      [1, 0, 0],
    ]
  return [
    [0, 0, 1, 0],
    [0, 1, 0, 0],
    [1, 0, 0, 0],
    [0, 0, 0, 1],
  ]
}
