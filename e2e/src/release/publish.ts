import { join } from 'node:path'
import type { Test } from 'tap'
import { type Ended, ROOT, runProgram } from '../serving.ts'
import { type FixtureImage, writeFixtureImages } from './fixture-images.ts'
import { type Registry, startRegistry } from './registry.ts'

/** With capitals, as owners at GitHub may be. */
const OWNER = 'Some-Owner'
const NAMES = ['operator', 'router', 'step', 'step-python', 'samples']

/** A release in a registry of its own. */
export interface PublishedRelease {
  readonly registry: Registry
  /** Prefix of its references: `127.0.0.1:PORT/some-owner`. */
  readonly prefix: string
  /** Folder with its files. */
  readonly out: string
  readonly images: readonly FixtureImage[]
  /** The references by digest that `push` has written, one a line. */
  readonly pushed: string
  /** Runs a step of a release on it. */
  readonly run: (command: string, ...flags: readonly string[]) => Promise<Ended>
}

/** Packs a release with small images of two platforms, and pushes it. @throws Error with what a step wrote if it fails. */
export async function publishRelease(t: Test): Promise<PublishedRelease> {
  const folder = t.testdir({ registry: {}, out: {} })
  const registry = await startRegistry(t, join(folder, 'registry'))
  const [amd64, arm64] = [join(folder, 'amd64'), join(folder, 'arm64')]
  const images = [
    ...(await writeFixtureImages(amd64, 'amd64', NAMES)),
    ...(await writeFixtureImages(arm64, 'arm64', NAMES)),
  ]
  const out = join(folder, 'out')
  const run = (command: string, ...flags: readonly string[]): Promise<Ended> => {
    const args = [`${ROOT}scripts/release.mjs`, command, `--out=${out}`, ...flags]
    return runProgram(process.execPath, args, { env: registry.env })
  }
  const to = [`--registry=${registry.address}/${OWNER}`, '--source=https://git.example/some/tutti']
  const packed = await run('pack', ...to)
  if (packed.code !== 0) throw new Error(packed.err)
  const folders = [`--images=${amd64}`, `--images=${arm64}`, '--plain-http']
  const pushed = await run('push', ...to, ...folders)
  if (pushed.code !== 0) throw new Error(pushed.err)
  const prefix = `${registry.address}/${OWNER.toLowerCase()}`
  return { registry, prefix, out, images, pushed: pushed.out, run }
}
