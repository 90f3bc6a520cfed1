import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { SetupFailure } from '../setup/failure.mjs'

/** In the order in which they are looked for. */
export const ENGINES = ['docker', 'buildah']

/** Whether an engine works: docker's program may be there without its daemon. */
const PROBES = {
  docker: ['version', '--format', '{{.Server.Version}}'],
  buildah: ['version'],
}

/**
 * The first engine that works, or the one that is named.
 *
 * @param {{ named?: string, probe?: (command: string, args: readonly string[]) => string | undefined }} o - `probe` says why
 *   a program does not work.
 * @throws SetupFailure that says why there is none.
 */
export function findEngine({ named, probe = probeProgram }) {
  const reasons = []
  for (const name of named === undefined ? ENGINES : [named]) {
    const reason = probe(name, PROBES[name])
    if (reason === undefined) return name
    reasons.push(`  ${name}: ${reason}`)
  }
  throw new SetupFailure(
    `Images are built with docker or buildah; here it does not work:\n${reasons.join('\n')}\n` +
      'Install one of them, for example: apt-get install buildah',
  )
}

function probeProgram(command, args) {
  const { error, status, stderr } = spawnSync(command, args, { encoding: 'utf8' })
  if (error !== undefined) return error.code === 'ENOENT' ? 'not in PATH' : error.message
  return status === 0 ? undefined : (stderr.trim().split('\n').at(-1) ?? `exit code ${status}`)
}

/**
 * The commands of an engine. Buildah keeps its images in a folder of their own, so that other images stay untouched.
 *
 * @param {{ store: string, isRoot: boolean }} o
 */
export function engineCommands(engine, { store, isRoot }) {
  return engine === 'docker' ? DOCKER : buildahCommands(store, isRoot)
}

/**
 * @typedef {object} Build
 * @property {string} file - the Dockerfile.
 * @property {string} [ignoreFile] - what of the context is left out; docker finds it by its name.
 * @property {string} context
 * @property {string} name - of the image.
 * @property {string} target
 * @property {Readonly<Record<string, string>>} args
 * @property {boolean} [noCache] - no layer of an earlier build is taken.
 * @property {string} [platform]
 * @property {readonly { source: string, target: string }[]} [mounts] - files of the machine that RUN sees and no image has.
 */

const DOCKER = {
  /** @param {Build} o - docker has its own settings for networks, so it mounts nothing. */
  build: (o) => ['docker', 'build', ...commonFlags(o), o.context],
  save: ({ name, archive }) => ['docker', 'save', '--output', archive, name],
}

function buildahCommands(store, isRoot) {
  const buildah = ['buildah', '--root', join(store, 'root'), '--runroot', join(store, 'run')]
  return {
    /** @param {Build} o */
    build: (o) => [
      ...buildah,
      'build',
      // A machine without user namespaces or an OCI runtime builds as well.
      ...(isRoot ? ['--isolation', 'chroot'] : []),
      '--format=oci',
      '--layers',
      // Else a container of the base stays mounted after each build with layers (buildah 1.28).
      '--force-rm',
      ...(o.ignoreFile === undefined ? [] : ['--ignorefile', o.ignoreFile]),
      // The time of the image and its files, so that two builds are equal.
      '--timestamp=0',
      ...(o.mounts ?? []).flatMap(({ source, target }) => ['--volume', `${source}:${target}:ro`]),
      ...commonFlags(o),
      o.context,
    ],
    save: ({ name, archive }) => [
      ...buildah,
      'push',
      '--quiet',
      name,
      `oci-archive:${archive}:${name}`,
    ],
  }
}

function commonFlags({ file, name, target, args, noCache, platform }) {
  return [
    `--file=${file}`,
    `--tag=${name}`,
    `--target=${target}`,
    ...(noCache ? ['--no-cache'] : []),
    ...(platform === undefined ? [] : [`--platform=${platform}`]),
    ...Object.entries(args).map(([key, value]) => `--build-arg=${key}=${value}`),
  ]
}

/** How an archive gets into a cluster's containerd. */
export const CLUSTERS = {
  kind: ({ archive, kindName }) => ['kind', 'load', 'image-archive', archive, '--name', kindName],
  k3s: ({ archive }) => ['k3s', 'ctr', 'images', 'import', archive],
}
