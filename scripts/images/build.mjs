import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { firstLine, runChild } from '../setup/child.mjs'
import { SetupFailure } from '../setup/failure.mjs'
import { layersAbove, readImage, unpackedBytes } from './archive.mjs'
import { makeBase, nodeVersionOf } from './base.mjs'
import { IMAGES, judgeSize, referenceOf, toMegabytes } from './catalogue.mjs'
import { revisionOf, sourceOf } from './git.mjs'
import { hostSettings } from './host-settings.mjs'
import { inputsDigest } from './inputs.mjs'
import { CLUSTERS } from './load.mjs'

/**
 * @typedef {object} Work
 * @property {string} root - of the checkout.
 * @property {string} folder - of the cache, for images.
 * @property {string} version
 * @property {'docker' | 'buildah'} engine
 * @property {ReturnType<import('./engine.mjs').engineCommands>} commands
 * @property {ReturnType<import('./options.mjs').parseOptions>} options
 */

/**
 * Builds images, leaves each as an archive with a note of what it was built from, and judges what it adds to its base.
 *
 * @param {Work} work
 * @throws SetupFailure if one cannot be built or is too large; those that are too large are left all the same.
 */
export async function buildImages(work) {
  const { root, folder, commands, options } = work
  const lent = hostSettings(join(folder, 'lent'))
  const base = options.makesBase
    ? await makeBase({
        folder: join(folder, 'base'),
        nodeVersion: nodeVersionOf(root),
        run,
        commands,
        say: console.error,
      })
    : options.base
  const faults = []
  // Of now: what changes while an image is built makes it one to build again.
  const inputs = inputsDigest(root)
  for (const name of options.names) {
    console.error(`Building ${referenceOf(name, options)} ...`)
    await run(commands.build(toBuild(name, { ...work, base, lent })))
    const archive = await save(name, inputs, work)
    const bytes = await addedBytes(name, { ...work, archive, base })
    console.log(
      `${archive}: ${referenceOf(name, options)}, ${toMegabytes(bytes)} MB above its base`,
    )
    faults.push(judgeSize(name, bytes))
  }
  const said = faults.filter((fault) => fault !== undefined)
  if (said.length > 0) throw new SetupFailure(said.join('\n'))
}

/** Loads archives into a cluster. @param {Work} work */
export async function loadImages({ options }) {
  const toCommand = CLUSTERS[options.cluster]
  for (const name of options.names) {
    await run(toCommand({ archive: archiveOf(name, options), kindName: options.kindName }))
  }
}

export function archiveOf(name, { out }) {
  return join(out, `${name}.tar`)
}

/** Whether an archive is there that was built from these inputs, under this name and for this platform. */
export function isUpToDate(name, inputs, options) {
  const archive = archiveOf(name, options)
  const note = noteOf(archive)
  return (
    existsSync(archive) &&
    existsSync(note) &&
    readFileSync(note, 'utf8') === toNote(name, inputs, options)
  )
}

function noteOf(archive) {
  return `${archive}.inputs`
}

function toNote(name, inputs, { platform, ...options }) {
  // Of one that is not named it is the machine's own.
  return `${[referenceOf(name, options), inputs, platform].filter(Boolean).join(' ')}\n`
}

/** Runs a command, with its output on ours. @param {readonly string[]} command */
export async function run([program, ...args]) {
  // A program that cannot be started is told as one that fails.
  const code = await runChild(program, args, { stdio: ['ignore', 2, 'inherit'] }).catch(
    (error) => error.message,
  )
  if (code !== 0) throw new SetupFailure(`${program} ${args.join(' ')} failed: ${code}`)
}

function toBuild(name, { root, version, base, lent, options }) {
  const { target, args = {} } = IMAGES[name]
  const file = join(root, 'images', 'Dockerfile')
  return {
    file,
    ignoreFile: `${file}.dockerignore`,
    context: root,
    name: referenceOf(name, options),
    target,
    platform: options.platform,
    lent,
    args: {
      BASE: base,
      CUDA_BASE: options.cudaBase,
      VERSION: version,
      REVISION: revisionOf(root),
      SOURCE: options.source ?? sourceOf(root),
      ...args,
    },
  }
}

/** Whoever reads archives never sees half of one. */
async function save(name, inputs, { commands, options }) {
  const archive = archiveOf(name, options)
  mkdirSync(options.out, { recursive: true })
  const unfinished = `${archive}.new`
  rmSync(unfinished, { force: true })
  await run(commands.save({ name: referenceOf(name, options), archive: unfinished }))
  rmSync(noteOf(archive), { force: true })
  renameSync(unfinished, archive)
  writeFileSync(noteOf(archive), toNote(name, inputs, options))
  return archive
}

async function addedBytes(name, { commands, archive, base, options }) {
  const below = IMAGES[name].args?.ROOT === 'cuda' ? options.cudaBase : base
  const { layers } = await readImage(archive)
  // Of the CUDA base that the Dockerfile names nothing is known here, and no size is asked for.
  const baseLayers = below === undefined ? [] : await layersOf(below, commands)
  return await unpackedBytes(archive, layersAbove(layers, baseLayers))
}

async function layersOf(image, commands) {
  const [program, ...args] = commands.inspect(image)
  const inspect = () => spawnSync(program, args, { encoding: 'utf8', maxBuffer: 1 << 26 })
  // A builder may keep what it has pulled to itself.
  if (inspect().status !== 0) await run(commands.pull(image))
  const { status, stdout, stderr } = inspect()
  if (status !== 0) throw new SetupFailure(`${image} cannot be inspected: ${stderr.trim()}`)
  return commands.layersOf(JSON.parse(stdout))
}

/** The first line that a command of an engine writes. */
export function ask([program, ...args]) {
  const line = firstLine(program, args)
  if (line === undefined) throw new SetupFailure(`${program} ${args.join(' ')} failed.`)
  return line
}
