package oracle.streams;

public interface DDLLCR extends LCR {
  String getDDLText();
}
