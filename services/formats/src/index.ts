export { measureJson, parseBoundedJson } from './bounded-json.ts'
export { formatNpy, isNpy, isNpyDatatype, parseNpy } from './npy.ts'
export { mayBePicture, type PictureLayout, pictureLayout } from './picture-layout.ts'
export { sizeOfField, WireReader, WireWriter } from './protobuf/wire.ts'
export {
  malformed,
  NAME_BYTES,
  tooLong,
  tooManyFields,
  WIRE_BYTES,
  WIRE_FIXED32,
  WIRE_FIXED64,
  WIRE_VARINT,
} from './protobuf/wire-fields.ts'
