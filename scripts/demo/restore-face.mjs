import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PNG } from 'pngjs'
import { askEnsemble } from './ask-ensemble.mjs'

const PICTURE = 'model_repository/.samples/astronaut-degraded.png'
const OUT = 'out'

/** The face system: a degraded picture in, the restored one out; both are written side by side. */
export const FACE = {
  ensemble: 'ens_face_restoration_v2.1',
  steps: ['pre_gfpgan', 'infer_face_restoration_v2.1', 'post_gfpgan'],
  show: restoreFace,
}

async function restoreFace(server) {
  const degraded = PNG.sync.read(await readFile(PICTURE))
  const { width, height } = degraded
  const { output, wallMs, table } = await askEnsemble(FACE, server, {
    name: 'raw_image',
    datatype: 'UINT8',
    shape: [height, width, 3],
    data: toBgr(degraded),
  })
  const restored = fromBgr(output, width, height)
  await mkdir(OUT, { recursive: true })
  await writeFile(join(OUT, 'restored.png'), PNG.sync.write(restored))
  await writeFile(join(OUT, 'side-by-side.png'), PNG.sync.write(sideBySide(degraded, restored)))

  console.log(
    `\n${FACE.ensemble}: ${width} x ${height} picture restored in ${wallMs.toFixed(1)} ms`,
  )
  console.log(`\n${table}`)
  console.log(
    `\nwrote ${join(OUT, 'restored.png')} and ${join(OUT, 'side-by-side.png')} (degraded | restored)`,
  )
}

/** RGBA pixels -> BGR bytes, as OpenCV would give them. */
function toBgr({ data, width, height }) {
  const bgr = new Uint8Array(width * height * 3)
  for (let pixel = 0; pixel < width * height; pixel++) {
    for (let channel = 0; channel < 3; channel++)
      bgr[pixel * 3 + channel] = data[pixel * 4 + 2 - channel]
  }
  return bgr
}

function fromBgr(bgr, width, height) {
  const png = new PNG({ width, height })
  png.data.fill(255)
  for (let pixel = 0; pixel < width * height; pixel++) {
    for (let channel = 0; channel < 3; channel++)
      png.data[pixel * 4 + 2 - channel] = bgr[pixel * 3 + channel]
  }
  return png
}

function sideBySide(left, right) {
  const png = new PNG({ width: left.width + right.width, height: left.height })
  PNG.bitblt(left, png, 0, 0, left.width, left.height, 0, 0)
  PNG.bitblt(right, png, 0, 0, right.width, right.height, left.width, 0)
  return png
}
