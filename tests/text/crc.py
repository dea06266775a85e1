"""CRC-32 bit by bit, as the standard defines it: what hashes of features are on any machine, in any language."""


def crc32(data: bytes, start: int = 0) -> int:
    value = start ^ 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0xEDB88320 if value & 1 else 0)
    return value ^ 0xFFFFFFFF
