import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { firstLine, runQuietly } from '../setup/child.mjs'
import { SetupFailure } from '../setup/failure.mjs'

const DOCKERFILE = join(import.meta.dirname, '../../images/base/Dockerfile')
const RELEASE = 'bookworm'
const MIRROR = 'http://deb.debian.org'
const SOURCES = [
  `deb ${MIRROR}/debian ${RELEASE} main`,
  `deb ${MIRROR}/debian ${RELEASE}-updates main`,
  `deb ${MIRROR}/debian-security ${RELEASE}-security main`,
]
const MMDEBSTRAP = [
  '--quiet',
  '--variant=apt',
  '--include=libstdc++6,ca-certificates,tzdata',
  '--dpkgopt=path-exclude=/usr/share/doc/*',
  '--dpkgopt=path-exclude=/usr/share/man/*',
  '--dpkgopt=path-exclude=/usr/share/locale/*',
  // Licences stay.
  '--dpkgopt=path-include=/usr/share/doc/*/copyright',
  // mmdebstrap takes these over from the machine that it runs on.
  '--customize-hook=rm -f "$1/etc/resolv.conf" "$1/etc/hostname"',
]
const NPM = 'npm@11.19.1'

/** ARGs of images/Dockerfile, and the stages of images/base/Dockerfile that stand in for what these name. */
const TARGETS = { BASE: 'debian', NODE: 'node' }

/**
 * Makes base images from packages of Debian and npm, for machines that reach package registries and no image registry.
 *
 * @param {{ folder: string, node: string, build: (o: import('./engine.mjs').Build) => Promise<void> }} o - `folder` keeps what
 *   was downloaded: remove it to take newer packages. `node` is a package of npm with the program, NAME@VERSION.
 * @returns {Promise<Record<keyof typeof TARGETS, string>>} the names of the images, by the ARG that takes them.
 */
export async function makeBases({ folder, node, build }) {
  mkdirSync(folder, { recursive: true })
  const inputs = JSON.stringify([SOURCES, MMDEBSTRAP])
  const digest = createHash('sha256').update(inputs).digest('hex').slice(0, 16)
  const debian = join(folder, `debian-${digest}.tar`)
  if (!existsSync(debian)) await makeDebian(debian)
  const context = mkdtempSync(join(folder, 'context-'))
  try {
    const install = ['install', '--silent', '--force', `--prefix=${context}`, node, NPM]
    await runQuietly('npm install', 'npm', install)
    copyFileSync(debian, join(context, 'debian.tar'))
    const bases = Object.entries(TARGETS).map(([arg, target]) => {
      return [arg, { target, name: `localhost/tutti/${target}:${RELEASE}` }]
    })
    for (const [, base] of bases) await build({ file: DOCKERFILE, context, args: {}, ...base })
    return Object.fromEntries(bases.map(([arg, { name }]) => [arg, name]))
  } finally {
    rmSync(context, { recursive: true, force: true })
  }
}

async function makeDebian(archive) {
  if (process.getuid?.() !== 0 || firstLine('mmdebstrap', ['--version']) === undefined) {
    throw new SetupFailure('--make-base needs root and mmdebstrap: apt-get install mmdebstrap')
  }
  console.error('Making a file system from packages of Debian (once, a minute) ...')
  const unfinished = `${archive}.new.tar`
  await runQuietly('mmdebstrap', 'mmdebstrap', [...MMDEBSTRAP, RELEASE, unfinished, ...SOURCES], {
    env: { ...process.env, SOURCE_DATE_EPOCH: '0' },
  })
  renameSync(unfinished, archive)
}
