import { readFile } from 'node:fs/promises'
import { decodeBytesTensor } from '@tutti/tensor'
import { askEnsemble } from './ask-ensemble.mjs'

const PICTURE = 'model_repository/.samples/words.jpg'
const TEXT = 'model_repository/.samples/words.txt'

/** The OCR system: the bytes of a picture in, its words out. Three of its steps are Python models. */
export const OCR = {
  ensemble: 'ensemble_model',
  steps: [
    'detection_preprocessing',
    'text_detection',
    'detection_postprocessing',
    'text_recognition',
    'recognition_postprocessing',
  ],
  show: readWords,
}

async function readWords(server) {
  const file = await readFile(PICTURE)
  const { output, wallMs, table } = await askEnsemble(OCR, server, {
    name: 'input_image',
    datatype: 'UINT8',
    shape: [1, file.length],
    data: file,
  })
  const words = decodeBytesTensor(output).map((word) => Buffer.from(word).toString())
  const drawn = (await readFile(TEXT, 'utf8')).trim().split('\n')
  const right = drawn.filter((word) => words.includes(word)).length

  console.log(`\n${OCR.ensemble}: ${PICTURE} read in ${wallMs.toFixed(1)} ms`)
  console.log(`\n${table}`)
  console.log(`\nread: ${words.join(' ')} (${right} of the ${drawn.length} words are right)`)
}
