import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Who speaks to the API server, by the name of the kubeconfig: user and groups. */
const USERS = {
  admin: ['admin', 'system:masters'],
  controllers: ['system:kube-controller-manager', ''],
  scheduler: ['system:kube-scheduler', ''],
  proxy: ['system:kube-proxy', ''],
  kubelet: ['system:node:NAME', 'system:nodes'],
}
const EC = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
const DAYS = ['-days', '365']

/**
 * Makes what the programs of a node know each other by: an authority; one certificate of the API server, as a server and as a
 * client; the key of service accounts; a token and a kubeconfig for each user.
 *
 * @param {string} folder - is made.
 * @param {{ name: string, address: string, names: readonly string[] }} o - `name` of the node; `address` and `names` of the
 *   API server.
 */
export function makeCertificates(folder, { name, address, names }) {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const path = (file) => join(folder, file)
  makeAuthority(path)
  issue(path, {
    subject: '/O=system:masters/CN=tutti-api-server',
    file: 'server',
    extensions: [`subjectAltName=${names.join(',')}`, 'extendedKeyUsage=serverAuth,clientAuth'],
  })
  const curve = ['ecparam', '-name', 'prime256v1', '-genkey', '-noout']
  openssl(...curve, '-out', path('accounts.key'))
  const ca = readFileSync(path('ca.crt')).toString('base64')
  const lines = Object.entries(USERS).map(([file, [user, group]]) => {
    const token = randomBytes(16).toString('hex')
    const text = kubeconfig({ server: `https://${address}:6443`, ca, token })
    writeFileSync(path(`${file}.kubeconfig`), text, { mode: 0o600 })
    return `${token},${user.replace('NAME', name)},${file},"${group}"\n`
  })
  writeFileSync(path('tokens.csv'), lines.join(''), { mode: 0o600 })
}

/** A certificate for a server's names, of an authority of its own: `ca.crt`, `server.crt` and `server.key` in the folder. */
export function makeServerCertificate(folder, names) {
  const path = (file) => join(folder, file)
  if (existsSync(path('server.crt'))) return
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  makeAuthority(path)
  const extensions = [`subjectAltName=${names.join(',')}`, 'extendedKeyUsage=serverAuth']
  issue(path, { subject: '/CN=tutti-ingress', file: 'server', extensions })
}

function makeAuthority(path) {
  const extensions = ['-addext', 'keyUsage=critical,keyCertSign,cRLSign,digitalSignature']
  const out = ['-keyout', path('ca.key'), '-out', path('ca.crt')]
  openssl('req', '-x509', ...EC, ...DAYS, ...out, '-subj', '/CN=tutti-test', ...extensions)
}

function issue(path, { subject, file, extensions }) {
  const [key, request, certificate] = ['key', 'csr', 'crt'].map((kind) => path(`${file}.${kind}`))
  openssl('req', ...EC, '-keyout', key, '-out', request, '-subj', subject)
  writeFileSync(path(`${file}.ext`), extensions.join('\n'))
  const by = ['-CA', path('ca.crt'), '-CAkey', path('ca.key'), '-set_serial', serial()]
  const more = ['-extfile', path(`${file}.ext`), '-out', certificate]
  openssl('x509', '-req', '-in', request, ...by, ...DAYS, ...more)
}

function serial() {
  return `0x${randomBytes(8).toString('hex')}`
}

function openssl(...args) {
  execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] })
}

/** As JSON, which is YAML too. */
function kubeconfig({ server, ca, token }) {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'tutti', cluster: { server, 'certificate-authority-data': ca } }],
    users: [{ name: 'tutti', user: { token } }],
    contexts: [{ name: 'tutti', context: { cluster: 'tutti', user: 'tutti' } }],
    'current-context': 'tutti',
  })
}
