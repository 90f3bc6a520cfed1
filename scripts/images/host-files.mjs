import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Where Debian's images, and ours, have the certificate authorities that programs trust. */
const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt'
const PUBLIC_REGISTRY = 'https://registry.npmjs.org/'
/** Settings that reach Debian's archives, of all that apt can be told. */
const APT_SETTINGS = /^Acquire::(Check-|https?::)/

/**
 * Files that tell npm, apt and pip how this machine reaches their registries. Buildah mounts them: RUN sees them, and no image
 * has them.
 *
 * @param {string} folder - for those that have to be written.
 * @param {{ env?: NodeJS.ProcessEnv, ask?: (command: string, args: readonly string[]) => string, exists?: (path: string) => boolean }} [o]
 * @returns {{ source: string, target: string }[]}
 */
export function hostFiles(
  folder,
  { env = process.env, ask = askProgram, exists = existsSync } = {},
) {
  const npm = (key) => {
    const value = ask('npm', ['config', 'get', key])
    return ['', 'null', 'undefined'].includes(value) ? undefined : value
  }
  const authorities = [npm('cafile'), env.NODE_EXTRA_CA_CERTS, env.SSL_CERT_FILE].find(
    (file) => file !== undefined && exists(file),
  )
  const registry = npm('registry') ?? PUBLIC_REGISTRY
  const npmrc = [
    ...(authorities === undefined ? [] : [`cafile=${AUTHORITIES}`]),
    ...(registry === PUBLIC_REGISTRY ? [] : [`registry=${registry}`]),
  ]
  const apt = ask('apt-config', ['dump'])
    .split('\n')
    .filter((line) => APT_SETTINGS.test(line))
  const write = (name, lines, target) => {
    if (lines.length === 0) return []
    mkdirSync(folder, { recursive: true })
    // An address may have a password in it. The files stay readable: apt reads them as another user.
    chmodSync(folder, 0o700)
    writeFileSync(join(folder, name), `${lines.join('\n')}\n`)
    return [{ source: join(folder, name), target }]
  }
  return [
    ...(authorities === undefined ? [] : [{ source: authorities, target: AUTHORITIES }]),
    ...write('npmrc', npmrc, '/usr/local/etc/npmrc'),
    ...write('apt.conf', apt, '/etc/apt/apt.conf.d/99host'),
    ...(exists('/etc/pip.conf') ? [{ source: '/etc/pip.conf', target: '/etc/pip.conf' }] : []),
  ]
}

/** Reads what a program writes, or nothing if it is not there. */
function askProgram(command, args) {
  const { status, stdout } = spawnSync(command, args, { encoding: 'utf8' })
  return status === 0 ? stdout.trim() : ''
}
