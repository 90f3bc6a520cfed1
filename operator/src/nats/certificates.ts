import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto'
import { isIPv4 } from 'node:net'

/** A certificate and its key, PEM. The key is secret. */
export interface CertificatePair {
  readonly certificate: string
  readonly key: string
}

export interface CertificateTimes {
  /** Milliseconds since the epoch. */
  readonly nowMs: number
  readonly lifetimeMs: number
}

/** Creates a self-signed P-256 certificate authority. It may sign server certificates, but no further authorities. */
export function createAuthority(times: CertificateTimes): CertificatePair {
  const keys = generateKeys()
  const name = commonName('tutti nats authority')
  const extensions = [
    extension(OID.basicConstraints, sequence(TRUE), 'critical'),
    // keyCertSign, cRLSign
    extension(OID.keyUsage, der(0x03, Buffer.from([1, 0x06])), 'critical'),
    extension(OID.subjectKeyId, der(0x04, keyIdOf(keys.publicKey))),
  ]
  const subject = { name, publicKey: keys.publicKey, extensions }
  return toPair(buildCertificate(subject, { name, key: keys.privateKey }, times), keys)
}

/**
 * Issues a certificate for servers. It is valid for servers and clients, because servers of a cluster connect to each other.
 *
 * @param hosts - at least one DNS name or IPv4 address. A DNS name may begin with `*.`.
 */
export function issueServerCertificate(
  authority: CertificatePair,
  hosts: readonly string[],
  times: CertificateTimes,
): CertificatePair {
  const keys = generateKeys()
  const key = createPrivateKey(authority.key)
  const extensions = [
    extension(OID.basicConstraints, sequence(), 'critical'),
    // digitalSignature
    extension(OID.keyUsage, der(0x03, Buffer.from([7, 0x80])), 'critical'),
    extension(OID.extendedKeyUsage, sequence(oid(OID.serverAuth), oid(OID.clientAuth))),
    extension(OID.subjectAltName, sequence(...hosts.map(toGeneralName))),
    extension(OID.subjectKeyId, der(0x04, keyIdOf(keys.publicKey))),
    extension(OID.authorityKeyId, sequence(der(0x80, keyIdOf(createPublicKey(key))))),
  ]
  const subject = { name: commonName('nats'), publicKey: keys.publicKey, extensions }
  const issuer = { name: commonName('tutti nats authority'), key }
  return toPair(buildCertificate(subject, issuer, times), keys)
}

/**
 * True if the certificate was issued by this authority for exactly these hosts, its key fits, and more than a third of its
 * lifetime is left. Text that is no certificate gives false.
 */
export function isServerCertificateGood(
  { certificate, key }: CertificatePair,
  authority: CertificatePair,
  o: { readonly hosts: readonly string[]; readonly nowMs: number },
): boolean {
  try {
    const read = new X509Certificate(certificate)
    const names = o.hosts.map((host) => (isIPv4(host) ? `IP Address:${host}` : `DNS:${host}`))
    const [fromMs, toMs] = [read.validFromDate.getTime(), read.validToDate.getTime()]
    return (
      read.verify(new X509Certificate(authority.certificate).publicKey) &&
      read.checkPrivateKey(createPrivateKey(key)) &&
      read.subjectAltName === names.join(', ') &&
      // A clock that went back must not keep a certificate for as long as it was ahead.
      fromMs <= o.nowMs + SKEW_MS &&
      o.nowMs < toMs - (toMs - fromMs) / 3
    )
  } catch {
    // It is no certificate, or no key: not what was made here.
    return false
  }
}

/** True if the pair is a certificate authority with the key that fits. */
export function isAuthority({ certificate, key }: CertificatePair): boolean {
  try {
    const read = new X509Certificate(certificate)
    return read.ca && read.checkPrivateKey(createPrivateKey(key))
  } catch {
    // As for servers.
    return false
  }
}

/** Clocks of servers and clients may be behind by as much. */
const SKEW_MS = 300_000

/** Object identifiers, encoded. */
const OID = {
  ecdsaWithSha256: '2a8648ce3d040302',
  commonName: '550403',
  subjectKeyId: '551d0e',
  keyUsage: '551d0f',
  subjectAltName: '551d11',
  basicConstraints: '551d13',
  authorityKeyId: '551d23',
  extendedKeyUsage: '551d25',
  serverAuth: '2b06010505070301',
  clientAuth: '2b06010505070302',
} as const

interface Subject {
  readonly name: Buffer
  readonly publicKey: KeyObject
  readonly extensions: readonly Buffer[]
}

/** @see RFC 5280, section 4.1 */
function buildCertificate(
  subject: Subject,
  issuer: { readonly name: Buffer; readonly key: KeyObject },
  { nowMs, lifetimeMs }: CertificateTimes,
): Buffer {
  const algorithm = sequence(oid(OID.ecdsaWithSha256))
  const serial = randomBytes(16)
  // A serial number is above 0, and has no zeros before it.
  serial[0] = 0x40 | (Number(serial[0]) & 0x3f)
  const toBeSigned = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, serial),
    algorithm,
    issuer.name,
    sequence(time(nowMs - SKEW_MS), time(nowMs + lifetimeMs)),
    subject.name,
    subject.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...subject.extensions)),
  )
  const signature = sign('sha256', toBeSigned, issuer.key)
  return sequence(toBeSigned, algorithm, der(0x03, Buffer.from([0]), signature))
}

interface Keys {
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

function generateKeys(): Keys {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' })
}

function toPair(certificate: Buffer, { privateKey }: Keys): CertificatePair {
  return {
    certificate: new X509Certificate(certificate).toString(),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

function keyIdOf(key: KeyObject): Buffer {
  return createHash('sha1')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest()
}

function commonName(text: string): Buffer {
  return sequence(der(0x31, sequence(oid(OID.commonName), der(0x0c, Buffer.from(text)))))
}

function extension(id: string, value: Buffer, critical?: 'critical'): Buffer {
  const flag = critical === undefined ? [] : [TRUE]
  return sequence(oid(id), ...flag, der(0x04, value))
}

function toGeneralName(host: string): Buffer {
  if (isIPv4(host)) return der(0x87, Buffer.from(host.split('.').map(Number)))
  return der(0x82, Buffer.from(host))
}

/** Encodes a time: as UTCTime until 2049, as GeneralizedTime from then on. */
function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '')
  return digits < '2050' ? der(0x17, Buffer.from(digits.slice(2))) : der(0x18, Buffer.from(digits))
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'))
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, ...parts)
}

const TRUE = der(0x01, Buffer.from([0xff]))

/** Encodes a value of ASN.1 as DER: tag, length, content. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content])
  const size = Buffer.from(length.toString(16).padStart(length < 0x100 ? 2 : 4, '0'), 'hex')
  return Buffer.concat([Buffer.from([tag, 0x80 | size.length]), size, content])
}
