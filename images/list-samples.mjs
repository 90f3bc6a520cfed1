// Lists what the samples have of others, as an SBOM of CycloneDX 1.5: node list-samples.mjs VERSION networks.txt
import { readFileSync } from 'node:fs'

const [version, networks] = process.argv.slice(2)
const WHEEL = /^([\w-]+)==([\w.]+) --hash=sha256:([0-9a-f]{64})$/m
const [, name, wheelVersion, content] = WHEEL.exec(readFileSync(networks, 'utf8'))
const purl = `pkg:pypi/${name}@${wheelVersion}`
const wheel = {
  'bom-ref': purl,
  type: 'machine-learning-model',
  name,
  version: wheelVersion,
  description: 'The networks of PaddleOCR in this wheel; nothing else of it is in the image.',
  hashes: [{ alg: 'SHA-256', content }],
  licenses: [{ license: { id: 'Apache-2.0' } }],
  purl,
}
const sbom = {
  bomFormat: 'CycloneDX',
  specVersion: '1.5',
  version: 1,
  metadata: { component: { type: 'data', name: 'tutti-samples', version } },
  components: [wheel],
}
process.stdout.write(`${JSON.stringify(sbom)}\n`)
