import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runProgram } from '../serving.ts'

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
const LAYOUT = ['oci-layout', 'index.json', 'blobs']

/** An image in a folder, as `npm run images` leaves it. */
export interface FixtureImage {
  readonly name: string
  readonly architecture: string
  /** Digest of its manifest. */
  readonly digest: string
}

/**
 * Writes NAME.tar, an OCI archive of a small image, and NAME.sbom.json, for each name.
 *
 * @param folder - made if it is not there.
 */
export async function writeFixtureImages(
  folder: string,
  architecture: string,
  names: readonly string[],
): Promise<readonly FixtureImage[]> {
  const written: FixtureImage[] = []
  for (const name of names) {
    const layout = join(folder, `${name}.layout`)
    const digest = await writeLayout(layout, `${name} for ${architecture}`, architecture)
    const archive = join(folder, `${name}.tar`)
    const { code, err } = await runProgram('tar', ['-cf', archive, '-C', layout, ...LAYOUT])
    if (code !== 0) throw new Error(err)
    const component = { type: 'library', name, purl: `pkg:generic/${name}@1?arch=${architecture}` }
    const predicate = { bomFormat: 'CycloneDX', specVersion: '1.5', components: [component] }
    const statement = { _type: 'https://in-toto.io/Statement/v1', predicate }
    await writeFile(join(folder, `${name}.sbom.json`), JSON.stringify(statement))
    written.push({ name, architecture, digest })
  }
  return written
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value))
}

async function writeLayout(layout: string, text: string, architecture: string): Promise<string> {
  const blobs = join(layout, 'blobs', 'sha256')
  await mkdir(blobs, { recursive: true })
  const write = async (mediaType: string, bytes: Buffer): Promise<Descriptor> => {
    const sum = createHash('sha256').update(bytes).digest('hex')
    await writeFile(join(blobs, sum), bytes)
    return { mediaType, digest: `sha256:${sum}`, size: bytes.length }
  }
  // No file, but a layer that differs: an archive of nothing but zeros, and text behind its end.
  const bytes = Buffer.concat([Buffer.alloc(1024), Buffer.from(text.padEnd(512))])
  const layer = await write('application/vnd.oci.image.layer.v1.tar', bytes)
  const config = await write(
    'application/vnd.oci.image.config.v1+json',
    json({ architecture, os: 'linux', rootfs: { type: 'layers', diff_ids: [layer.digest] } }),
  )
  const image = { schemaVersion: 2, mediaType: MANIFEST, config, layers: [layer] }
  const manifest = await write(MANIFEST, json(image))
  await writeFile(join(layout, 'oci-layout'), json({ imageLayoutVersion: '1.0.0' }))
  await writeFile(join(layout, 'index.json'), json({ schemaVersion: 2, manifests: [manifest] }))
  return manifest.digest
}

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}
