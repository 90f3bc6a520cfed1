import { formatNpy } from '@tutti/formats'
import { type NamedTensor } from '@tutti/tensor'
import { useMemo } from 'preact/hooks'
import { shapeOf } from '../parts.tsx'
import type { InferAnswer } from './infer-body.ts'
import { download } from './load-file.ts'
import { outputPicture } from './output-picture.ts'
import { EncodedPicture, Picture } from './picture.tsx'
import { formatElement, kindOf, numbersOf, readBytes, toText } from './tensor-elements.ts'

const MOST_NUMBERS = 96
const MOST_COLUMNS = 12
const MOST_TEXTS = 16
const MOST_CHARACTERS = 4000

/** Shows the outputs of a request, each as a picture, as texts or as numbers. */
export function AnswerView({ answer }: { readonly answer: InferAnswer }) {
  return answer.outputs.map((output) => <Output key={output.name} output={output} />)
}

function Output({ output }: { readonly output: NamedTensor }) {
  const { name, datatype } = output
  return (
    <section class="output" aria-label={`Output ${name}`}>
      <h3>
        {name} <span class="type quiet">{shapeOf(output)}</span>
      </h3>
      {datatype === 'BYTES' ? <Texts output={output} /> : <Numbers output={output} />}
    </section>
  )
}

function Texts({ output: { name, data } }: { readonly output: NamedTensor }) {
  const { first, count, isCut } = readBytes(data, MOST_TEXTS)
  return (
    <>
      {first.map((element, i) => (
        <Element key={i} label={count === 1 ? name : `${name}[${i}]`} element={element} />
      ))}
      {count > first.length && <p class="quiet">{`… ${count.toLocaleString('en')} in all`}</p>}
      {isCut && <p class="reason">The lengths of its elements do not fit its bytes.</p>}
      {count !== 1 && <Download name={`${name}.bin`} parts={[data]} />}
    </>
  )
}

const ENDINGS = { png: 'png', jpeg: 'jpg', text: 'txt', bytes: 'bin' } as const

function Element({ label, element }: { readonly label: string; readonly element: Uint8Array }) {
  const kind = kindOf(element)
  const text = kind === 'text' ? (toText(element) ?? '') : ''
  return (
    <div class="element">
      {(kind === 'png' || kind === 'jpeg') && <EncodedPicture label={label} bytes={element} />}
      {kind === 'text' && (
        <pre tabIndex={0} aria-label={label}>
          {text.slice(0, MOST_CHARACTERS)}
          {text.length > MOST_CHARACTERS && ' …'}
        </pre>
      )}
      {kind === 'bytes' && (
        <p class="quiet">{element.byteLength.toLocaleString('en')} bytes that are no text</p>
      )}
      {(kind !== 'text' || text.length > MOST_CHARACTERS) && (
        <Download name={`${label}.${ENDINGS[kind]}`} parts={[element]} />
      )}
    </div>
  )
}

function Numbers({ output }: { readonly output: NamedTensor }) {
  const picture = useMemo(() => outputPicture(output), [output])
  const npy = formatNpy(output)
  const name = `${output.name}.${npy === undefined ? 'raw' : 'npy'}`
  return (
    <>
      {picture && (
        <figure>
          <Picture label={output.name} drawing={picture} />
          <figcaption class="quiet">
            {picture.range.map(Number).join(' is black, ')} is white
            {picture.batch > 1 && `; the first of ${picture.batch}`}
          </figcaption>
        </figure>
      )}
      {picture ? (
        <details>
          <summary>Values</summary>
          <NumberTable output={output} isPicture />
        </details>
      ) : (
        <NumberTable output={output} isPicture={false} />
      )}
      <Download name={name} parts={npy ?? [output.data]} />
    </>
  )
}

/** The first elements; in rows where the last extent is small, whole pixels of a picture. */
function NumberTable(o: { readonly output: NamedTensor; readonly isPicture: boolean }) {
  const { output, isPicture } = o
  const { datatype, shape } = output
  const { count, at } = numbersOf(output)
  const last = shape.at(-1) ?? 1
  const isRow = !isPicture && shape.length > 1 && last > 1 && last <= MOST_COLUMNS
  const columns = isRow ? last : isPicture ? MOST_COLUMNS : 8
  const shown = Math.min(count, MOST_NUMBERS)
  const rows = Array.from({ length: Math.ceil(shown / columns) }, (_, row) => row * columns)
  if (count === 0) return <p class="quiet">No elements</p>
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`Elements of ${output.name}`}>
      <table class="elements">
        <tbody>
          {rows.map((from) => (
            <tr key={from}>
              <th scope="row" class="number quiet">
                {from}
              </th>
              {Array.from({ length: Math.min(columns, shown - from) }, (_, i) => (
                <td key={i} class="number">
                  {formatElement(at(from + i), datatype)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {count > shown && <p class="quiet">{`… ${count.toLocaleString('en')} in all`}</p>}
    </div>
  )
}

function Download(o: { readonly name: string; readonly parts: readonly Uint8Array[] }) {
  // Names of tensors may have anything in them, those of files not.
  const name = o.name.replace(/[/\\\p{Cc}]/gu, '_')
  return (
    <button type="button" class="plain" onClick={() => download(name, o.parts)}>
      Download {name}
    </button>
  )
}
